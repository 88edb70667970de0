from scheduler.core.requeue import back_off_s


def test_each_node_lost_doubles_the_wait_up_to_half_an_hour() -> None:
    # the first is nobody's fault; then 30 s times 2, 4, 8, ...; 30 x 2^6 = 1920 is more than 1800
    waits = [back_off_s(losses) for losses in range(8)]
    assert waits == [0.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1800.0, 1800.0]
    assert back_off_s(10**9) == 1800.0
