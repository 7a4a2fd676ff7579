/* A simulated libnvidia-ml.so.1 for tests: answers from a text file that is read anew at every call, so that a test
 * changes the machine while a process runs. The file's lines are described in __init__.py, beside this file.
 *
 * Layouts and codes are NVML's own (nvml.h), as far as pynvml and command line tools use them. A handle is a number:
 * 0x1000 + 0x100 * device for a device, plus 1 + instance for one of its MIG instances.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUCCESS 0
#define UNINITIALIZED 1
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NO_PERMISSION 4
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define GPU_IS_LOST 15
#define NO_STATE 17
#define UNKNOWN 999

#define MOST_DEVICES 32
#define MOST_INSTANCES 14
#define MOST_PROCESSES 256
#define MOST_FAULTS 128
#define EVERY_DEVICE -1
#define NO_INSTANCE 0xFFFFFFFFu

typedef void *handle_t;
typedef unsigned long long u64;

struct process { unsigned pid; int instance; char kind[12]; u64 memory; unsigned sm, mem; int while_alive; };
struct instance { int used; char name[96], uuid[96]; u64 total, reserved; unsigned slices; };
struct device {
    char name[96], uuid[96], pci[32], serial[32];
    u64 total, reserved, energy;
    int major, minor, number, persistence, lost, mig, is_closed;
    unsigned max_mig, utilization, memory_utilization, temperature, power, power_limit;
    unsigned clock[4], max_clock[4]; /* graphics, SM, memory, video */
    struct instance instances[MOST_INSTANCES];
    struct process processes[MOST_PROCESSES];
    int process_count;
};
struct fault { int device; char function[64]; int code; int stalls; };
struct state {
    char driver[80], nvml[80];
    int cuda, init, device_count, fault_count, logs;
    struct device devices[MOST_DEVICES];
    struct fault faults[MOST_FAULTS];
};

static struct state now;
static int users;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* ---- the state file ---- */

static void copy(char *target, size_t size, const char *text) { snprintf(target, size, "%s", text); }

static void read_clock(unsigned *clock, const char *rest) {
    sscanf(rest, "%u %u %u %u", &clock[0], &clock[1], &clock[2], &clock[3]);
}

static void add_fault(int device, const char *rest, int stalls) {
    struct fault *fault = &now.faults[now.fault_count];
    if (now.fault_count == MOST_FAULTS) return;
    memset(fault, 0, sizeof *fault);
    fault->device = device;
    fault->stalls = stalls;
    if (sscanf(rest, "%63s %d", fault->function, &fault->code) >= 1) now.fault_count++;
}

static int is_alive(unsigned pid) {
    char path[64], line[512], *end;
    FILE *file;
    int alive = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (!(file = fopen(path, "re"))) return 0;
    if (fgets(line, sizeof line, file) && (end = strrchr(line, ')')) && end[1]) alive = !strchr("ZX", end[2]);
    fclose(file);
    return alive;
}

static void add_process(struct device *device, const char *rest) {
    struct process *process = &device->processes[device->process_count];
    if (device->process_count == MOST_PROCESSES) return;
    memset(process, 0, sizeof *process);
    process->instance = -1;
    if (sscanf(rest, "%u %11s %llu %u %u %d %d", &process->pid, process->kind, &process->memory, &process->sm,
               &process->mem, &process->instance, &process->while_alive) < 2) return;
    if (!process->while_alive || is_alive(process->pid)) device->process_count++;
}

static void read_instance(struct device *device, const char *rest) {
    int number, place = 0;
    char key[32];
    struct instance *instance;
    if (sscanf(rest, "%d %31s %n", &number, key, &place) < 2 || number < 0 || number >= MOST_INSTANCES) return;
    instance = &device->instances[number];
    instance->used = 1;
    rest += place;
    if (!strcmp(key, "name")) copy(instance->name, sizeof instance->name, rest);
    else if (!strcmp(key, "uuid")) copy(instance->uuid, sizeof instance->uuid, rest);
    else if (!strcmp(key, "total")) instance->total = strtoull(rest, NULL, 10);
    else if (!strcmp(key, "reserved")) instance->reserved = strtoull(rest, NULL, 10);
    else if (!strcmp(key, "slices")) instance->slices = strtoul(rest, NULL, 10);
}

static void read_device(const char *rest) {
    int number, place = 0;
    char key[32];
    struct device *device;
    if (sscanf(rest, "%d %31s %n", &number, key, &place) < 2 || number < 0 || number >= MOST_DEVICES) return;
    if (number >= now.device_count) now.device_count = number + 1;
    device = &now.devices[number];
    rest += place;
    if (!strcmp(key, "name")) copy(device->name, sizeof device->name, rest);
    else if (!strcmp(key, "uuid")) copy(device->uuid, sizeof device->uuid, rest);
    else if (!strcmp(key, "serial")) copy(device->serial, sizeof device->serial, rest);
    else if (!strcmp(key, "pci")) copy(device->pci, sizeof device->pci, rest);
    else if (!strcmp(key, "total")) device->total = strtoull(rest, NULL, 10);
    else if (!strcmp(key, "reserved")) device->reserved = strtoull(rest, NULL, 10);
    else if (!strcmp(key, "energy")) device->energy = strtoull(rest, NULL, 10);
    else if (!strcmp(key, "capability")) sscanf(rest, "%d %d", &device->major, &device->minor);
    else if (!strcmp(key, "minor")) device->number = atoi(rest);
    else if (!strcmp(key, "persistence")) device->persistence = atoi(rest);
    else if (!strcmp(key, "lost")) device->lost = atoi(rest);
    else if (!strcmp(key, "mig")) device->mig = atoi(rest);
    else if (!strcmp(key, "closed")) device->is_closed = atoi(rest);
    else if (!strcmp(key, "max_mig")) device->max_mig = strtoul(rest, NULL, 10);
    else if (!strcmp(key, "utilization")) sscanf(rest, "%u %u", &device->utilization, &device->memory_utilization);
    else if (!strcmp(key, "temperature")) device->temperature = strtoul(rest, NULL, 10);
    else if (!strcmp(key, "power")) sscanf(rest, "%u %u", &device->power, &device->power_limit);
    else if (!strcmp(key, "clock")) read_clock(device->clock, rest);
    else if (!strcmp(key, "max_clock")) read_clock(device->max_clock, rest);
    else if (!strcmp(key, "process")) add_process(device, rest);
    else if (!strcmp(key, "instance")) read_instance(device, rest);
    else if (!strcmp(key, "error")) add_fault(number, rest, 0);
    else if (!strcmp(key, "stall")) add_fault(number, rest, 1);
}

static void read_line(char *line) {
    char key[32];
    int place = 0;
    line[strcspn(line, "\r\n")] = 0;
    if (sscanf(line, "%31s %n", key, &place) < 1 || key[0] == '#') return;
    line += place;
    if (!strcmp(key, "driver")) copy(now.driver, sizeof now.driver, line);
    else if (!strcmp(key, "nvml")) copy(now.nvml, sizeof now.nvml, line);
    else if (!strcmp(key, "cuda")) now.cuda = atoi(line);
    else if (!strcmp(key, "init")) now.init = atoi(line);
    else if (!strcmp(key, "log")) now.logs = atoi(line);
    else if (!strcmp(key, "error")) add_fault(EVERY_DEVICE, line, 0);
    else if (!strcmp(key, "stall")) add_fault(EVERY_DEVICE, line, 1);
    else if (!strcmp(key, "device")) read_device(line);
}

static int read_file(const char *path) {
    char line[512];
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) read_line(line);
    fclose(file);
    return 1;
}

/* In a container the variable is not set: the state is mounted at a fixed path. */
static const char *state_path(void) {
    const char *path = getenv("SIMULATED_NVML_STATE");
    return path ? path : "/run/simulated-nvml/nvml-state";
}

/* Whether a container was given this device: by number, by UUID, or by those of some of its instances, which then are
 * the only ones that it has. */
static int is_visible(int number, const char *names) {
    struct device *device = &now.devices[number];
    char words[4096], digits[16], *word, *rest;
    int place, kept = 0, is_whole = 0, is_part[MOST_INSTANCES] = {0};
    snprintf(digits, sizeof digits, "%d", number);
    copy(words, sizeof words, names);
    for (word = strtok_r(words, "\n", &rest); word; word = strtok_r(NULL, "\n", &rest)) {
        if (!strcmp(word, digits) || !strcmp(word, device->uuid)) is_whole = 1;
        for (place = 0; place < MOST_INSTANCES; place++)
            if (device->instances[place].used && !strcmp(word, device->instances[place].uuid)) kept = is_part[place] = 1;
    }
    for (place = 0; !is_whole && place < MOST_INSTANCES; place++) device->instances[place].used &= is_part[place];
    return is_whole || kept;
}

/* In a container with some of the devices, which are numbered anew there: their names stand in a file of its own. */
static void keep_visible(void) {
    char names[4096];
    int places[MOST_DEVICES], number, fault, count = 0;
    size_t size;
    FILE *file = getenv("SIMULATED_NVML_STATE") ? NULL : fopen("/run/simulated-nvml-visible", "re");
    if (!file) return;
    size = fread(names, 1, sizeof names - 1, file);
    names[size] = 0;
    fclose(file);
    for (number = 0; number < now.device_count; number++) {
        places[number] = is_visible(number, names) ? count++ : MOST_DEVICES;
        if (places[number] < number) now.devices[places[number]] = now.devices[number];
    }
    for (fault = 0; fault < now.fault_count; fault++)
        if (now.faults[fault].device >= 0) now.faults[fault].device = places[now.faults[fault].device];
    now.device_count = count;
}

static int read_state(void) {
    char beside[4096];
    const char *path = state_path();
    memset(&now, 0, sizeof now);
    if (!read_file(path)) return 0;
    snprintf(beside, sizeof beside, "%s.processes", path);
    read_file(beside);
    keep_visible();
    return 1;
}

static void log_call(const char *function) {
    char beside[4096];
    FILE *file;
    snprintf(beside, sizeof beside, "%s.calls", state_path());
    if (!(file = fopen(beside, "ae"))) return;
    fprintf(file, "%d %s\n", (int)getpid(), function);
    fclose(file);
}

/* ---- what every call does first ---- */

static int device_of(handle_t handle) {
    u64 number = (u64)(size_t)handle;
    if (number < 0x1000 || (number - 0x1000) / 0x100 >= (u64)now.device_count) return -1;
    return (int)((number - 0x1000) / 0x100);
}

static int instance_of(handle_t handle) { return (int)((u64)(size_t)handle % 0x100) - 1; }

static handle_t handle_of(int device, int instance) {
    return (handle_t)(size_t)(0x1000 + 0x100 * device + 1 + instance);
}

/* Reads the state, holds the lock on success, and answers with the code that the file has for this call. */
static int begin(const char *function, int device) {
    int number, code = SUCCESS, stalls = 0;
    pthread_mutex_lock(&guard);
    if (!read_state()) code = NO_STATE;
    if (now.logs) log_call(function);
    for (number = 0; number < now.fault_count; number++) {
        struct fault *fault = &now.faults[number];
        if (strcmp(fault->function, function) && strcmp(fault->function, "*")) continue;
        if (fault->device != EVERY_DEVICE && fault->device != device) continue;
        if (fault->stalls) stalls = 1;
        else code = fault->code;
    }
    if (stalls) {
        pthread_mutex_unlock(&guard);
        for (;;) pause();
    }
    if (code == SUCCESS && device >= 0 && device < now.device_count && now.devices[device].lost) code = GPU_IS_LOST;
    if (code != SUCCESS) pthread_mutex_unlock(&guard);
    return code;
}

static int end(int code) {
    pthread_mutex_unlock(&guard);
    return code;
}

static int begin_call(const char *function) { return users ? begin(function, EVERY_DEVICE) : UNINITIALIZED; }

static int begin_device(const char *function, handle_t handle, struct device **device) {
    u64 number = (u64)(size_t)handle;
    int place = number < 0x1000 ? -2 : (int)((number - 0x1000) / 0x100);
    int code = users ? begin(function, place) : UNINITIALIZED;
    if (code != SUCCESS) return code;
    place = device_of(handle);
    if (place < 0) return end(INVALID_ARGUMENT);
    if (instance_of(handle) >= 0 && !now.devices[place].instances[instance_of(handle)].used) return end(NOT_FOUND);
    *device = &now.devices[place];
    return SUCCESS;
}

static int give_text(const char *text, char *target, unsigned size) {
    if (!text[0]) return NOT_SUPPORTED;
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(target, text);
    return SUCCESS;
}

#define BEGIN(device, handle)                                     \
    struct device *device;                                        \
    int begun = begin_device(__func__, handle, &device);          \
    if (begun != SUCCESS) return begun;
#define DEVICE_ONLY(handle) if (instance_of(handle) >= 0) return end(NOT_SUPPORTED);

/* ---- the library ---- */

static int initialize(void) {
    int code = begin("nvmlInit_v2", EVERY_DEVICE);
    if (code != SUCCESS) return code;
    if (now.init != SUCCESS) return end(now.init);
    users++;
    return end(SUCCESS);
}

int nvmlInit(void) { return initialize(); }
int nvmlInit_v2(void) { return initialize(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return initialize(); }

int nvmlShutdown(void) {
    if (!users) return UNINITIALIZED;
    users--;
    return SUCCESS;
}

const char *nvmlErrorString(int code) {
    switch (code) {
    case 0: return "Success";
    case 1: return "Uninitialized";
    case 2: return "Invalid Argument";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 6: return "Not Found";
    case 7: return "Insufficient Size";
    case 8: return "Insufficient External Power";
    case 9: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case 15: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 17: return "The operating system has blocked the request";
    case 18: return "RM has detected an NVML/RM version mismatch.";
    case 19: return "In use by another client";
    case 21: return "No data";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    int code = begin_call(__func__);
    return code == SUCCESS ? end(give_text(now.driver, version, size)) : code;
}

int nvmlSystemGetNVMLVersion(char *version, unsigned size) {
    int code = begin_call(__func__);
    return code == SUCCESS ? end(give_text(now.nvml, version, size)) : code;
}

static int cuda_version(const char *function, int *version) {
    int code = begin_call(function);
    if (code != SUCCESS) return code;
    *version = now.cuda;
    return end(now.cuda ? SUCCESS : NOT_SUPPORTED);
}

int nvmlSystemGetCudaDriverVersion(int *version) { return cuda_version(__func__, version); }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { return cuda_version(__func__, version); }

/* ---- devices ---- */

static int count_devices(const char *function, unsigned *count) {
    int code = begin_call(function);
    if (code != SUCCESS) return code;
    *count = (unsigned)now.device_count;
    return end(SUCCESS);
}

int nvmlDeviceGetCount(unsigned *count) { return count_devices(__func__, count); }
int nvmlDeviceGetCount_v2(unsigned *count) { return count_devices(__func__, count); }

static int by_index(const char *function, unsigned index, handle_t *handle) {
    int code = users ? begin(function, (int)index) : UNINITIALIZED;
    if (code != SUCCESS) return code;
    if (index >= (unsigned)now.device_count) return end(INVALID_ARGUMENT);
    *handle = handle_of((int)index, -1);
    return end(SUCCESS);
}

int nvmlDeviceGetHandleByIndex(unsigned index, handle_t *handle) { return by_index(__func__, index, handle); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle_t *handle) { return by_index(__func__, index, handle); }

int nvmlDeviceGetHandleByUUID(const char *uuid, handle_t *handle) {
    int number, each, code = begin_call(__func__);
    if (code != SUCCESS) return code;
    for (number = 0; number < now.device_count; number++) {
        struct device *device = &now.devices[number];
        if (!strcmp(device->uuid, uuid)) {
            *handle = handle_of(number, -1);
            return end(device->lost ? GPU_IS_LOST : SUCCESS);
        }
        for (each = 0; device->mig == 1 && each < MOST_INSTANCES; each++)
            if (device->instances[each].used && !strcmp(device->instances[each].uuid, uuid)) {
                *handle = handle_of(number, each);
                return end(SUCCESS);
            }
    }
    return end(NOT_FOUND);
}

static int parts_of(const char *text, unsigned *domain, unsigned *bus, unsigned *slot) {
    return sscanf(text, "%x:%x:%x", domain, bus, slot) == 3;
}

static int by_pci(const char *function, const char *bus_id, handle_t *handle) {
    unsigned domain, bus, slot, at[3];
    int number, code = begin_call(function);
    if (code != SUCCESS) return code;
    if (!parts_of(bus_id, &domain, &bus, &slot)) return end(INVALID_ARGUMENT);
    for (number = 0; number < now.device_count; number++)
        if (parts_of(now.devices[number].pci, &at[0], &at[1], &at[2]) && at[0] == domain && at[1] == bus && at[2] == slot) {
            *handle = handle_of(number, -1);
            return end(now.devices[number].lost ? GPU_IS_LOST : SUCCESS);
        }
    return end(NOT_FOUND);
}

int nvmlDeviceGetHandleByPciBusId(const char *id, handle_t *handle) { return by_pci(__func__, id, handle); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, handle_t *handle) { return by_pci(__func__, id, handle); }

int nvmlDeviceGetIndex(handle_t handle, unsigned *index) {
    BEGIN(device, handle)
    *index = (unsigned)(device - now.devices);
    return end(SUCCESS);
}

int nvmlDeviceGetName(handle_t handle, char *name, unsigned size) {
    BEGIN(device, handle)
    int instance = instance_of(handle);
    return end(give_text(instance < 0 ? device->name : device->instances[instance].name, name, size));
}

int nvmlDeviceGetUUID(handle_t handle, char *uuid, unsigned size) {
    BEGIN(device, handle)
    int instance = instance_of(handle);
    return end(give_text(instance < 0 ? device->uuid : device->instances[instance].uuid, uuid, size));
}

int nvmlDeviceGetSerial(handle_t handle, char *serial, unsigned size) {
    BEGIN(device, handle)
    return end(give_text(device->serial, serial, size));
}

int nvmlDeviceGetMinorNumber(handle_t handle, unsigned *number) {
    BEGIN(device, handle)
    *number = (unsigned)device->number;
    return end(SUCCESS);
}

int nvmlDeviceGetCudaComputeCapability(handle_t handle, int *major, int *minor) {
    BEGIN(device, handle)
    *major = device->major;
    *minor = device->minor;
    return end(SUCCESS);
}

struct pci { char legacy[16]; unsigned domain, bus, slot, device_id, subsystem_id; char id[32]; };

static int pci_info(const char *function, handle_t handle, struct pci *pci) {
    struct device *device;
    int code = begin_device(function, handle, &device);
    if (code != SUCCESS) return code;
    memset(pci, 0, sizeof *pci);
    if (!parts_of(device->pci, &pci->domain, &pci->bus, &pci->slot)) return end(NOT_SUPPORTED);
    snprintf(pci->legacy, sizeof pci->legacy, "%04X:%02X:%02X.0", pci->domain & 0xFFFF, pci->bus & 0xFF, pci->slot & 0xFF);
    snprintf(pci->id, sizeof pci->id, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->slot);
    pci->device_id = 0x102D10DE;
    return end(SUCCESS);
}

int nvmlDeviceGetPciInfo(handle_t handle, struct pci *pci) { return pci_info(__func__, handle, pci); }
int nvmlDeviceGetPciInfo_v2(handle_t handle, struct pci *pci) { return pci_info(__func__, handle, pci); }
int nvmlDeviceGetPciInfo_v3(handle_t handle, struct pci *pci) { return pci_info(__func__, handle, pci); }

/* ---- numbers that change ---- */

static u64 used_memory(struct device *device, int instance) {
    u64 used = instance < 0 ? device->reserved : device->instances[instance].reserved;
    int number;
    for (number = 0; number < device->process_count; number++)
        if (instance < 0 || device->processes[number].instance == instance) used += device->processes[number].memory;
    return used;
}

static u64 total_memory(struct device *device, int instance) {
    return instance < 0 ? device->total : device->instances[instance].total;
}

struct memory { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };

int nvmlDeviceGetMemoryInfo(handle_t handle, struct memory *memory) {
    BEGIN(device, handle)
    memory->total = total_memory(device, instance_of(handle));
    memory->used = used_memory(device, instance_of(handle));
    memory->free = memory->total > memory->used ? memory->total - memory->used : 0;
    return end(SUCCESS);
}

int nvmlDeviceGetMemoryInfo_v2(handle_t handle, struct memory_v2 *memory) {
    BEGIN(device, handle)
    int instance = instance_of(handle);
    u64 used = used_memory(device, instance);
    if (memory->version != (0x02000000 | sizeof *memory)) return end(25);
    memory->total = total_memory(device, instance);
    memory->reserved = instance < 0 ? device->reserved : device->instances[instance].reserved;
    memory->used = used - memory->reserved;
    memory->free = memory->total > used ? memory->total - used : 0;
    return end(SUCCESS);
}

struct utilization { unsigned gpu, memory; };

int nvmlDeviceGetUtilizationRates(handle_t handle, struct utilization *rates) {
    BEGIN(device, handle)
    int number;
    if (device->mig == 1) return end(NOT_SUPPORTED); /* neither the device nor its instances have it */
    rates->gpu = device->utilization;
    rates->memory = device->memory_utilization;
    for (number = 0; number < device->process_count; number++) {
        rates->gpu += device->processes[number].sm;
        rates->memory += device->processes[number].mem;
    }
    if (rates->gpu > 100) rates->gpu = 100;
    if (rates->memory > 100) rates->memory = 100;
    return end(SUCCESS);
}

int nvmlDeviceGetClockInfo(handle_t handle, unsigned type, unsigned *clock) {
    BEGIN(device, handle)
    DEVICE_ONLY(handle)
    if (type > 3) return end(INVALID_ARGUMENT);
    *clock = device->clock[type];
    return end(SUCCESS);
}

int nvmlDeviceGetMaxClockInfo(handle_t handle, unsigned type, unsigned *clock) {
    BEGIN(device, handle)
    DEVICE_ONLY(handle)
    if (type > 3) return end(INVALID_ARGUMENT);
    *clock = device->max_clock[type];
    return end(SUCCESS);
}

int nvmlDeviceGetTemperature(handle_t handle, unsigned sensor, unsigned *temperature) {
    BEGIN(device, handle)
    if (sensor) return end(INVALID_ARGUMENT);
    *temperature = device->temperature;
    return end(SUCCESS);
}

int nvmlDeviceGetPowerUsage(handle_t handle, unsigned *milliwatts) {
    BEGIN(device, handle)
    DEVICE_ONLY(handle)
    *milliwatts = device->power;
    return end(SUCCESS);
}

int nvmlDeviceGetEnforcedPowerLimit(handle_t handle, unsigned *milliwatts) {
    BEGIN(device, handle)
    DEVICE_ONLY(handle)
    *milliwatts = device->power_limit;
    return end(SUCCESS);
}

int nvmlDeviceGetTotalEnergyConsumption(handle_t handle, u64 *millijoules) {
    BEGIN(device, handle)
    DEVICE_ONLY(handle)
    *millijoules = device->energy;
    return end(SUCCESS);
}

int nvmlDeviceGetPersistenceMode(handle_t handle, unsigned *mode) {
    BEGIN(device, handle)
    *mode = (unsigned)device->persistence;
    return end(SUCCESS);
}

/* ---- processes ---- */

struct process_info { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; };

static int running(const char *function, const char *kind, handle_t handle, unsigned *count, struct process_info *infos) {
    struct device *device;
    int number, instance, code = begin_device(function, handle, &device);
    unsigned found = 0, room;
    if (code != SUCCESS) return code;
    instance = instance_of(handle);
    if (device->mig == 1 && device->is_closed && instance < 0) return end(NO_PERMISSION); /* of all parts: root alone */
    room = infos ? *count : 0;
    for (number = 0; number < device->process_count; number++) {
        struct process *process = &device->processes[number];
        if (strcmp(process->kind, kind) || (instance >= 0 && process->instance != instance)) continue;
        if (found < room) {
            infos[found].pid = process->pid;
            infos[found].memory = process->memory ? process->memory : ~0ULL; /* NVML_VALUE_NOT_AVAILABLE */
            infos[found].gpu_instance = process->instance < 0 ? NO_INSTANCE : (unsigned)process->instance + 1;
            infos[found].compute_instance = process->instance < 0 ? NO_INSTANCE : 0;
        }
        found++;
    }
    *count = found;
    return end(found > room ? INSUFFICIENT_SIZE : SUCCESS);
}

#define RUNNING(name, kind)                                                      \
    int name(handle_t handle, unsigned *count, struct process_info *infos) {     \
        return running(__func__, kind, handle, count, infos);                    \
    }
RUNNING(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
RUNNING(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps")
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

struct sample { unsigned pid; u64 time; unsigned sm, memory, encoder, decoder; };

/* One sample per process, taken just now: what is asked for since an earlier moment has always one more. */
int nvmlDeviceGetProcessUtilization(handle_t handle, struct sample *samples, unsigned *count, u64 since) {
    BEGIN(device, handle)
    struct timespec clock;
    unsigned room = samples ? *count : 0, found = 0;
    u64 moment;
    int number;
    if (device->mig == 1) return end(NOT_SUPPORTED);
    clock_gettime(CLOCK_REALTIME, &clock);
    moment = (u64)clock.tv_sec * 1000000 + (u64)clock.tv_nsec / 1000;
    for (number = 0; number < device->process_count && moment > since; number++) {
        struct process *process = &device->processes[number];
        if (found < room) {
            memset(&samples[found], 0, sizeof samples[found]);
            samples[found].pid = process->pid;
            samples[found].time = moment;
            samples[found].sm = process->sm;
            samples[found].memory = process->mem;
        }
        found++;
    }
    *count = found;
    if (!found) return end(NOT_FOUND);
    return end(found > room ? INSUFFICIENT_SIZE : SUCCESS);
}

/* ---- MIG ---- */

int nvmlDeviceGetMigMode(handle_t handle, unsigned *current, unsigned *pending) {
    BEGIN(device, handle)
    DEVICE_ONLY(handle)
    if (device->mig < 0) return end(NOT_SUPPORTED);
    *current = *pending = (unsigned)device->mig;
    return end(SUCCESS);
}

int nvmlDeviceGetMaxMigDeviceCount(handle_t handle, unsigned *count) {
    BEGIN(device, handle)
    *count = device->mig < 0 ? 0 : device->max_mig;
    return end(SUCCESS);
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle_t handle, unsigned index, handle_t *found) {
    BEGIN(device, handle)
    if (device->mig != 1 || index >= MOST_INSTANCES || !device->instances[index].used) return end(NOT_FOUND);
    *found = handle_of((int)(device - now.devices), (int)index);
    return end(SUCCESS);
}

int nvmlDeviceIsMigDeviceHandle(handle_t handle, unsigned *is_instance) {
    BEGIN(device, handle)
    *is_instance = instance_of(handle) >= 0;
    return end(SUCCESS);
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle_t handle, handle_t *found) {
    BEGIN(device, handle)
    *found = handle_of((int)(device - now.devices), -1);
    return end(SUCCESS);
}

int nvmlDeviceGetGpuInstanceId(handle_t handle, unsigned *id) {
    BEGIN(device, handle)
    if (instance_of(handle) < 0) return end(NOT_SUPPORTED);
    *id = (unsigned)instance_of(handle) + 1;
    return end(SUCCESS);
}

int nvmlDeviceGetComputeInstanceId(handle_t handle, unsigned *id) {
    BEGIN(device, handle)
    if (instance_of(handle) < 0) return end(NOT_SUPPORTED);
    *id = 0;
    return end(SUCCESS);
}

struct attributes { unsigned multiprocessors, copies, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices; u64 megabytes; };

int nvmlDeviceGetAttributes_v2(handle_t handle, struct attributes *attributes) {
    BEGIN(device, handle)
    int instance = instance_of(handle);
    if (instance < 0) return end(NOT_SUPPORTED);
    memset(attributes, 0, sizeof *attributes);
    attributes->gpu_slices = attributes->compute_slices = device->instances[instance].slices;
    attributes->megabytes = device->instances[instance].total >> 20;
    return end(SUCCESS);
}
