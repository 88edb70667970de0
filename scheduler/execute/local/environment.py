"""The environment of a replica: nothing of the portal's, and only the devices that it holds."""

import math
from collections.abc import Mapping

from scheduler.execute.base import Binding, ReplicaBinding
from scheduler.execute.local.checkpoints import FOLDER

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NO_DEVICE = "-1"
"""Ascend and ROCm stop at the first id that does not exist, so -1 is none."""


def replica_environment(
    binding: Binding, replica: ReplicaBinding, *, home: str, path: str
) -> dict[str, str]:
    """Return all variables of one replica.

    The job's own ones win over the defaults; what says who it is, where its checkpoints go and
    which devices it holds can't be set by the job.
    """
    return {
        "PATH": path,
        "HOME": home,
        "PWD": home,
        "USER": "job",
        "LOGNAME": "job",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": str(max(1, math.ceil(binding.cpu_milli / 1000))),
        **binding.env,
        **_identity(binding, replica),
        "KILTER_CHECKPOINT_DIR": f"{home}/{FOLDER}",
        **device_variables(replica),
    }


def device_variables(replica: ReplicaBinding) -> Mapping[str, str]:
    """Return what makes each vendor's runtime see the replica's devices and no others.

    CUDA numbers devices by speed unless told to use the order of NVML; a MIG device has no number
    and goes by its id. HIP counts within what ROCr lets through.
    """
    shown = ",".join(map(str, replica.device_indices))
    values = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "",
        "ASCEND_RT_VISIBLE_DEVICES": NO_DEVICE,
        "ROCR_VISIBLE_DEVICES": NO_DEVICE,
        "HIP_VISIBLE_DEVICES": NO_DEVICE,
    }
    if not replica.device_indices:
        return values
    if replica.vendor == "nvidia":
        mig = [uid for uid in replica.device_uids if uid.startswith("MIG-")]
        values["CUDA_VISIBLE_DEVICES"] = ",".join(mig) or shown
    elif replica.vendor == "amd":
        values["ROCR_VISIBLE_DEVICES"] = shown
        values["HIP_VISIBLE_DEVICES"] = ",".join(map(str, range(len(replica.device_indices))))
    elif replica.vendor == "ascend":
        values["ASCEND_RT_VISIBLE_DEVICES"] = shown
    return values


def _identity(binding: Binding, replica: ReplicaBinding) -> Mapping[str, str]:
    return {
        "KILTER_JOB_ID": binding.uid,
        "KILTER_ATTEMPT": str(binding.attempt),
        "KILTER_REPLICA": str(replica.index),
        "KILTER_REPLICAS": str(len(binding.replicas)),
        "KILTER_GPU_MILLI": str(replica.gpu_milli),
        "KILTER_GPU_MEMORY_MIB": str(replica.gpu_memory_mib),
    }
