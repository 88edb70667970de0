"""The NVML reader against a pretended driver that the real pynvml loads."""

from tests.telemetry.sense.conftest import Answer, Driver
from tests.telemetry.sense.sysfs import Sysfs


def uids(answer: Answer) -> list[str]:
    return [device["uid"] for device in answer["devices"]]


def health(answer: Answer) -> dict[str, str]:
    return {device["uid"]: device["health"] for device in answer["devices"]}


def test_a_device_is_read_in_full(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=1, busy=73); look(NvmlReader('n'))")
    assert answer["note"] == ""
    assert answer["devices"] == [
        {
            "uid": "GPU-0",
            "index": 0,
            "vendor": "nvidia",
            "model": "NVIDIA A100-SXM4-80GB",
            "memory_mib": 81920,
            "health": "healthy",
            "health_note": "",
            "utilised_frac": 0.73,
            "memory_used_mib": 1000,
            "power_w": 123.456,
            "temperature_c": 41.0,
            "process_ids": [4000],
            "mig_profile": "",
            "parent_uid": "",
            "link_group": -1,
            "numa_node": -1,
            "nic": "",
            "throttled": False,
        }
    ]


def test_without_a_driver_there_is_a_note_and_no_device(no_driver: Driver) -> None:
    (answer,) = no_driver.run("look(NvmlReader('n'))")
    assert answer == {"devices": [], "note": "no NVIDIA driver"}


def test_a_driver_that_is_not_loaded_is_no_driver(driver: Driver) -> None:
    (answer,) = driver.run("machine(init=9); look(NvmlReader('n'))")
    assert answer == {"devices": [], "note": "no NVIDIA driver"}


def test_another_failure_to_open_says_why(driver: Driver) -> None:
    (answer,) = driver.run("machine(init=18); look(NvmlReader('n'))")
    assert answer["devices"] == []
    assert answer["note"].startswith("the NVIDIA driver can't be used: ")


def test_a_function_that_an_old_driver_lacks_leaves_its_field_unknown(old_driver: Driver) -> None:
    (answer,) = old_driver.run("machine(count=1, mig=0); look(NvmlReader('n'))")
    (device,) = answer["devices"]
    assert device["power_w"] is None
    assert device["utilised_frac"] == 0.5
    assert device["process_ids"] == [4000]
    assert device["health"] == "healthy"
    assert device["link_group"] == -1
    assert device["numa_node"] == -1


def test_the_numa_node_is_told_and_slices_share_that_of_their_device(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=2, mig=1, numa=63); look(NvmlReader('n'))")
    told = {device["uid"]: device["numa_node"] for device in answer["devices"]}
    assert told == {"GPU-0": 63, "GPU-1": 64, "MIG-1-0": 64, "MIG-1-1": 64}  # 64: the next word


def test_a_device_as_near_to_two_numa_nodes_is_known_to_be_on_neither(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=1, numa=-2); look(NvmlReader('n'))")
    assert answer["devices"][0]["numa_node"] == -1


def test_the_nearest_network_card_is_told_and_slices_share_that_of_their_device(
    driver: Driver,
) -> None:
    tree = Sysfs(driver.root)  # the pretended GPU i says that it is 00000000:<i + 1>:00.0
    tree.device("pci0000:00/0000:00:01.0/0000:01:00.0")
    tree.device("pci0000:40/0000:40:01.0/0000:02:00.0")
    tree.device("pci0000:80/0000:80:01.0/0000:03:00.0")
    tree.card("infiniband", "mlx5_0", "pci0000:00/0000:00:02.0/0000:11:00.0")
    tree.card("infiniband", "mlx5_1", "pci0000:40/0000:40:02.0/0000:42:00.0")
    (answer,) = driver.run("machine(count=3, mig=1); look(NvmlReader('n'))")
    told = {device["uid"]: device["nic"] for device in answer["devices"]}
    cards = {"GPU-0": "mlx5_0", "GPU-1": "mlx5_1", "GPU-2": ""}
    assert told == {**cards, "MIG-1-0": "mlx5_1", "MIG-1-1": "mlx5_1"}


def test_what_the_hardware_slows_down_for_heat_is_throttled_with_its_slices(
    driver: Driver,
) -> None:
    hot, cool = driver.run(
        "r = NvmlReader('n'); machine(count=3, hot=1, warm=2, mig=1); look(r)\n"
        "machine(count=3, mig=1); look(r)"
    )
    told = {device["uid"]: device["throttled"] for device in hot["devices"]}
    # 2 is warm only: software lowers its clocks a little, which is no reason to spare it
    assert told == {"GPU-0": False, "GPU-1": True, "MIG-1-0": True, "MIG-1-1": True, "GPU-2": False}
    assert not any(device["throttled"] for device in cool["devices"])


def test_of_a_lost_device_it_is_not_said_that_it_is_hot(driver: Driver) -> None:
    _, after = driver.run(
        "r = NvmlReader('n'); machine(count=2, hot=1); look(r)\n"
        "machine(count=2, hot=1, lost=1); look(r)"
    )
    assert [(d["health"], d["throttled"]) for d in after["devices"]] == [
        ("healthy", False),
        ("lost", False),
    ]


def test_a_lost_device_is_lost_and_the_others_are_read(driver: Driver) -> None:
    before, after = driver.run(
        "r = NvmlReader('n'); machine(count=3); look(r); machine(count=3, lost=1); look(r)"
    )
    assert health(before) == {"GPU-0": "healthy", "GPU-1": "healthy", "GPU-2": "healthy"}
    assert health(after) == {"GPU-0": "healthy", "GPU-1": "lost", "GPU-2": "healthy"}
    assert after["devices"][1]["model"] == "NVIDIA A100-SXM4-80GB"
    assert after["devices"][1]["utilised_frac"] is None
    assert after["devices"][2]["utilised_frac"] == 0.5


def test_a_device_whose_handle_is_lost_keeps_the_uid_known_before(driver: Driver) -> None:
    _, after = driver.run(
        "r = NvmlReader('n'); machine(count=2); look(r); machine(count=2, lost_handle=1); look(r)"
    )
    assert health(after) == {"GPU-0": "healthy", "GPU-1": "lost"}
    assert after["devices"][1]["memory_mib"] == 81920


def test_a_device_lost_from_the_first_call_gets_a_uid_of_node_and_index(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=2, lost_handle=1); look(NvmlReader('n'))")
    assert health(answer) == {"GPU-0": "healthy", "n/nvidia/1": "lost"}


def test_worn_out_memory_makes_a_device_unhealthy(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=2, worn=1); look(NvmlReader('n'))")
    assert health(answer) == {"GPU-0": "healthy", "GPU-1": "unhealthy"}
    assert "memory rows" in answer["devices"][1]["health_note"]


def test_mig_slices_are_devices_with_profile_and_parent(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=2, mig=1); look(NvmlReader('n'))")
    assert uids(answer) == ["GPU-0", "GPU-1", "MIG-1-0", "MIG-1-1"]
    piece = answer["devices"][3]
    assert piece["parent_uid"] == "GPU-1"
    assert piece["mig_profile"] == "3g.40gb"
    assert piece["model"] == "NVIDIA A100-SXM4-80GB"
    assert piece["memory_mib"] == 40192
    assert piece["utilised_frac"] is None


def test_a_mig_profile_is_made_of_attributes_where_the_name_has_none(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=1, mig=0, plain_mig_name=1); look(NvmlReader('n'))")
    assert answer["devices"][1]["mig_profile"] == "3g.40gb"


def test_slices_of_a_lost_device_are_lost_with_it(driver: Driver) -> None:
    _, after = driver.run(
        "r = NvmlReader('n'); machine(count=1, mig=0); look(r); "
        "machine(count=1, mig=0, lost=0); look(r)"
    )
    assert health(after) == {"GPU-0": "lost", "MIG-0-0": "lost", "MIG-0-1": "lost"}


def test_slices_removed_from_a_healthy_device_are_gone(driver: Driver) -> None:
    _, after = driver.run(
        "r = NvmlReader('n'); machine(count=1, mig=0); look(r); machine(count=1); look(r)"
    )
    assert uids(after) == ["GPU-0"]


def test_a_device_that_is_not_listed_any_more_is_lost(driver: Driver) -> None:
    _, after, again = driver.run(
        "r = NvmlReader('n'); machine(count=3); look(r); "
        "machine(count=2, skip=1, skip_from=1); look(r); machine(count=3); look(r)"
    )
    assert health(after) == {"GPU-0": "healthy", "GPU-2": "healthy", "GPU-1": "lost"}
    assert health(again) == {"GPU-0": "healthy", "GPU-1": "healthy", "GPU-2": "healthy"}


def test_a_device_that_is_added_appears(driver: Driver) -> None:
    before, after = driver.run(
        "r = NvmlReader('n'); machine(count=1); look(r); machine(count=2); look(r)"
    )
    assert uids(before) == ["GPU-0"]
    assert uids(after) == ["GPU-0", "GPU-1"]


def test_a_driver_that_goes_away_leaves_its_devices_unknown_and_comes_back(driver: Driver) -> None:
    before, gone, back = driver.run(
        "r = NvmlReader('n'); machine(count=1); look(r); "
        "machine(count=1, count_error=999, init=9); look(r); machine(count=1); look(r)"
    )
    assert health(before) == {"GPU-0": "healthy"}
    assert health(gone) == {"GPU-0": "unknown"}
    assert gone["devices"][0]["utilised_frac"] is None
    assert gone["note"] != ""
    assert health(back) == {"GPU-0": "healthy"}
    assert back["note"] == ""


def test_a_driver_that_is_loaded_anew_is_opened_anew(driver: Driver) -> None:
    _, during, after = driver.run(
        "r = NvmlReader('n'); machine(count=1); look(r); "
        "machine(count=1, reload=1); look(r); look(r)"
    )
    assert health(during) == {"GPU-0": "unknown"}
    assert health(after) == {"GPU-0": "healthy"}


def test_the_library_stays_open_and_is_opened_anew_now_and_then(driver: Driver) -> None:
    answers = driver.run(
        "r = NvmlReader('n'); machine(count=1, tell_opens=1)\nfor _ in range(61): look(r)"
    )
    opens = [answer["devices"][0]["temperature_c"] for answer in answers]
    assert opens == [1.0] * 59 + [2.0] * 2


def test_the_library_is_opened_anew_when_no_device_answers(driver: Driver) -> None:
    *_, after = driver.run(
        "r = NvmlReader('n'); machine(count=1); look(r); machine(count=1, lost=0); look(r); "
        "machine(count=1, tell_opens=1); look(r)"
    )
    assert after["devices"][0]["temperature_c"] == 2.0


def test_a_driver_that_hangs_does_not_hang_the_caller(driver: Driver) -> None:
    before, during, still, after = driver.run(
        "r = NvmlReader('n', timeout_s=0.5); machine(count=1); look(r); start = time.monotonic(); "
        "machine(count=1, hang_s=2); look(r); look(r); took = time.monotonic() - start; "
        "assert threading.active_count() == 2, threading.enumerate(); "
        "machine(count=1); time.sleep(2); look(r); assert took < 1.8, took"
    )
    assert health(before) == {"GPU-0": "healthy"}
    for answer in (during, still):
        assert health(answer) == {"GPU-0": "unknown"}
        assert answer["note"] == "the NVIDIA driver did not answer within 0.5 s"
    assert health(after) == {"GPU-0": "healthy"}


def test_a_name_of_odd_bytes_is_no_crash(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=1, bad_name=1); look(NvmlReader('n'))")
    assert answer["devices"][0]["model"] == "unknown"
    assert answer["devices"][0]["memory_mib"] == 81920


def test_nvlink_makes_islands(driver: Driver) -> None:
    (answer,) = driver.run("machine(count=5, links=1); look(NvmlReader('n'))")
    assert [device["link_group"] for device in answer["devices"]] == [0, 0, 1, 1, -1]
