"""Stands in for AMD's module of this name; `kit.amd` says what there is. Runs on every Python of the far side."""

import enum
import json
import os

_NOT_SUPPORTED = 2


class AmdSmiException(Exception):
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code, err_info="AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported"):
        super().__init__(err_code)
        self.err_code, self.err_info = err_code, err_info

    def __str__(self):
        return "Error code:\n\t{} | {}".format(self.err_code, self.err_info)


class AmdSmiTemperatureType(enum.IntEnum):
    EDGE = 0
    HOTSPOT = 1
    JUNCTION = 1
    VRAM = 2


class AmdSmiTemperatureMetric(enum.IntEnum):
    CURRENT = 0
    MAX = 1


class _Handle:
    def __init__(self, number):
        self.number = number


def amdsmi_init(flag=2):
    problem = _state("amdsmi_init")["init"]
    if problem:
        raise AmdSmiLibraryException(34, problem)


def amdsmi_shut_down():
    pass


def amdsmi_get_processor_handles():
    return [_Handle(number) for number in range(len(_state("amdsmi_get_processor_handles")["devices"]))]


def amdsmi_get_gpu_asic_info(processor_handle):
    device = _device("amdsmi_get_gpu_asic_info", processor_handle)
    return {"market_name": device["name"], "vendor_id": "0x1002", "device_id": "0x740f", "asic_serial": "N/A"}


def amdsmi_get_gpu_device_uuid(processor_handle):
    return _device("amdsmi_get_gpu_device_uuid", processor_handle)["uuid"]


def amdsmi_get_gpu_activity(processor_handle):
    """Per cent, or N/A."""
    activity = _device("amdsmi_get_gpu_activity", processor_handle)["activity"]
    return {"gfx_activity": activity, "umc_activity": 0, "mm_activity": "N/A"}


def amdsmi_get_gpu_vram_usage(processor_handle):
    """Mebibytes."""
    device = _device("amdsmi_get_gpu_vram_usage", processor_handle)
    return {"vram_total": device["total"] >> 20, "vram_used": device["used"] >> 20}


def amdsmi_get_power_info(processor_handle):
    """Watts; one of the readings is N/A, which one depends on the device."""
    device = _device("amdsmi_get_power_info", processor_handle)
    found = {"current_socket_power": "N/A", "average_socket_power": device["power"], "gfx_voltage": 806}
    return dict(found, soc_voltage="N/A", mem_voltage="N/A", power_limit=300000000)


def amdsmi_get_temp_metric(processor_handle, sensor_type, metric):
    """Degrees."""
    device = _device("amdsmi_get_temp_metric", processor_handle)
    assert isinstance(sensor_type, AmdSmiTemperatureType) and isinstance(metric, AmdSmiTemperatureMetric)
    found = device["edge"] if sensor_type is AmdSmiTemperatureType.EDGE else device["junction"]
    if found is None:
        raise AmdSmiLibraryException(_NOT_SUPPORTED)
    return found


def amdsmi_get_gpu_process_list(processor_handle):
    """Bytes, and nanoseconds of engines."""
    device = _device("amdsmi_get_gpu_process_list", processor_handle)
    if _state(None)["handles"]:
        return [process["pid"] for process in device["processes"]]
    return [_process(process) for process in device["processes"]]


def amdsmi_get_gpu_process_info(processor_handle, process):
    device = _device("amdsmi_get_gpu_process_info", processor_handle)
    return _process(next(each for each in device["processes"] if each["pid"] == process))


def _process(process):
    return {
        "name": "N/A",
        "pid": process["pid"],
        "mem": process["memory"],
        "engine_usage": {"gfx": 0, "enc": 0},
        "memory_usage": {"gtt_mem": 2097152, "cpu_mem": 0, "vram_mem": process["memory"]},
        "cu_occupancy": "N/A",
    }


def _device(function, handle):
    device = _state(function)["devices"][handle.number]
    if function in device["fails"] or "*" in device["fails"]:
        raise AmdSmiLibraryException(_NOT_SUPPORTED)
    return device


def _state(function):
    path = os.environ["SIMULATED_AMDSMI_STATE"]
    if function is not None:
        with open(path + ".calls", "a") as log:
            log.write(function + "\n")
    with open(path) as source:
        return json.load(source)
