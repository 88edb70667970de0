/* A pretended libnvidia-ml.so.1 for tests. What it says stands in the file named by FAKE_NVML, which
 * is read again at every call, so that a test can change the machine while a process looks at it:
 * lines of "key number". Keys and defaults are in ask() calls below. With -DOLD_DRIVER it lacks the
 * functions that old drivers lack. Layouts follow nvml.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, LOST = 15 };
typedef unsigned long long u64;
typedef struct { int index, mig; } *device;
static struct { int index, mig; } devices[64][8];

static long ask(const char *key, long otherwise) {
    char name[64], *path = getenv("FAKE_NVML");
    long value, found = otherwise;
    FILE *file = path ? fopen(path, "r") : NULL;
    while (file && fscanf(file, "%63s %ld", name, &value) == 2)
        if (!strcmp(name, key)) found = value;
    if (file) fclose(file);
    return found;
}
static int lost(device d) { return d->index == ask("lost", -1) ? LOST : OK; }
static int opened, opens;
static long opened_at; /* "reload": a driver loaded anew does not know those who opened the old one */

int nvmlInitWithFlags(unsigned flags) {
    int result = flags ? INVALID : ask("init", OK);
    opens++, opened = result == OK, opened_at = ask("reload", 0);
    return result;
}
int nvmlShutdown(void) { opened = 0; return OK; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : "Pretended error"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    if (!opened || opened_at != ask("reload", 0)) return UNINITIALIZED;
    *count = ask("count", 2);
    return ask("count_error", OK);
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *out) {
    if (index == ask("lost_handle", -1)) return LOST;
    devices[index][0].index = index, devices[index][0].mig = -1;
    *out = (device)&devices[index][0];
    return OK;
}
int nvmlDeviceGetUUID(device d, char *text, unsigned size) {
    long serial = d->index + ask("skip", 0) * (d->index >= ask("skip_from", 99));
    if (d->mig < 0) snprintf(text, size, "GPU-%ld", serial);
    else snprintf(text, size, "MIG-%ld-%d", serial, d->mig);
    return OK;
}
int nvmlDeviceGetName(device d, char *text, unsigned size) {
    if (ask("bad_name", 0)) snprintf(text, size, "\xff\xfe");
    else if (d->mig < 0) snprintf(text, size, "NVIDIA A100-SXM4-80GB");
    else if (ask("plain_mig_name", 0)) snprintf(text, size, "NVIDIA A100-SXM4-80GB");
    else snprintf(text, size, "NVIDIA A100-SXM4-80GB MIG 3g.40gb");
    return lost(d);
}
int nvmlDeviceGetMemoryInfo(device d, u64 *memory) {
    u64 mib = 1024 * 1024, total = (d->mig < 0 ? 81920 : 40192) * mib;
    memory[0] = total, memory[2] = 1000 * mib, memory[1] = total - memory[2];
    return lost(d);
}
int nvmlDeviceGetUtilizationRates(device d, unsigned *rates) {
    sleep(ask("hang_s", 0));
    rates[0] = ask("busy", 50), rates[1] = 10;
    return d->mig < 0 ? lost(d) : UNSUPPORTED;
}
int nvmlDeviceGetTemperature(device d, unsigned sensor, unsigned *celsius) {
    *celsius = ask("tell_opens", 0) ? opens : 41;
    return sensor ? INVALID : lost(d);
}
int nvmlDeviceGetPciInfo_v3(device d, char *pci) {
    memset(pci, 0, 68);
    snprintf(pci + 36, 32, "00000000:%02X:00.0", d->index + 1);
    return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v2(device d, unsigned *count, char *out) {
    unsigned room = *count, pid = 4000 + d->index;
    *count = 1;
    if (!room || !out) return TOO_SMALL;
    memset(out, 0, 24);
    memcpy(out, &pid, sizeof pid);
    return lost(d);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(device d, u64 *reasons) {
    *reasons = d->index == ask("hot", -1) ? 0x40 : d->index == ask("warm", -1) ? 0x20 : 0;
    return d->mig < 0 ? lost(d) : UNSUPPORTED;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryAffinity(device d, unsigned words, u64 *nodes, unsigned scope) {
    long node = ask("numa", -1); /* that of device 0; the others follow; -2: all are as near */
    if (node == -1 || d->mig >= 0) return UNSUPPORTED;
    memset(nodes, 0, words * sizeof *nodes);
    if (node == -2) nodes[0] = 3;
    else nodes[(node + d->index) / 64] = 1ull << (node + d->index) % 64;
    return scope ? INVALID : lost(d);
}
int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *count, char *out) {
    return nvmlDeviceGetComputeRunningProcesses_v2(d, count, out);
}
int nvmlDeviceGetPowerUsage(device d, unsigned *milliwatts) {
    *milliwatts = 123456;
    return d->mig < 0 ? lost(d) : UNSUPPORTED;
}
int nvmlDeviceGetRemappedRows(device d, unsigned *a, unsigned *b, unsigned *pending, unsigned *failed) {
    *a = *b = *pending = 0, *failed = d->index == ask("worn", -1);
    return OK;
}
int nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *next) {
    return *now = *next = d->index == ask("mig", -1), OK;
}
int nvmlDeviceGetMaxMigDeviceCount(device d, unsigned *count) { (void)d; return *count = 7, OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(device d, unsigned number, device *out) {
    if (number >= 2) return NOT_FOUND;
    devices[d->index][number + 1].index = d->index, devices[d->index][number + 1].mig = number;
    *out = (device)&devices[d->index][number + 1];
    return OK;
}
int nvmlDeviceGetAttributes_v2(device d, char *attributes) {
    unsigned slices = 3;
    u64 mib = 40192;
    memset(attributes, 0, 40);
    memcpy(attributes + 24, &slices, sizeof slices);
    memcpy(attributes + 32, &mib, sizeof mib);
    return lost(d);
}
int nvmlDeviceGetNvLinkState(device d, unsigned link, unsigned *active) {
    if (!ask("links", 0)) return UNSUPPORTED;
    return *active = link < 2 && d->index < 4, link < 12 ? OK : INVALID;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(device d, unsigned link, char *pci) {
    memset(pci, 0, 68); /* 0 and 1 are linked, and 2 and 3 */
    snprintf(pci + 36, 32, "00000000:%02X:00.0", (d->index ^ 1) + 1);
    return link < 12 ? OK : INVALID;
}
#endif
