/* Which GPUs there seem to be: as many as BPT_GPUS_ON_CORES says, none without it. Their driver
 * seems to be for the version of CUDA that BPT_DRIVER_ON_CORES says (12040: 12.4; 0: there is
 * none), for this one without it. With BPT_CODE_ON_CORES=0 the program seems to have no code for
 * them. */
#include "tests/inner/gpu_on_cores/device_memory.h"
#include "tests/inner/gpu_on_cores/stream.h"

#include <cstdlib>
#include <cstring>

static thread_local cudaError_t last_error;
static thread_local int current_device;

cudaError_t gpu_on_cores::failed(cudaError_t error) {
    last_error = error;
    return error;
}

int gpu_on_cores::current_gpu() {
    return current_device;
}

using namespace gpu_on_cores;

cudaError_t cudaGetLastError(void) {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorInvalidValue:
        return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
        return "cudaErrorInvalidConfiguration";
    case cudaErrorStubLibrary:
        return "cudaErrorStubLibrary";
    case cudaErrorInsufficientDriver:
        return "cudaErrorInsufficientDriver";
    case cudaErrorInvalidDeviceFunction:
        return "cudaErrorInvalidDeviceFunction";
    case cudaErrorNoDevice:
        return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
        return "cudaErrorInvalidDevice";
    case cudaErrorNoKernelImageForDevice:
        return "cudaErrorNoKernelImageForDevice";
    case cudaErrorUnsupportedPtxVersion:
        return "cudaErrorUnsupportedPtxVersion";
    case cudaErrorInvalidResourceHandle:
        return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
        return "cudaErrorNotReady";
    case cudaErrorStreamCaptureUnsupported:
        return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
        return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorHostMemoryAlreadyRegistered:
        return "cudaErrorHostMemoryAlreadyRegistered";
    case cudaErrorCapturedEvent:
        return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureUnjoined:
        return "cudaErrorStreamCaptureUnjoined";
    }
    return "an unknown error";
}

const char *cudaGetErrorString(cudaError_t error) {
    return cudaGetErrorName(error);
}

static int number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

static int n_devices() {
    return number_of("BPT_GPUS_ON_CORES", 0);
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = number_of("BPT_DRIVER_ON_CORES", CUDART_VERSION);
    return cudaSuccess;
}

static bool is_driver_old() {
    int version;
    cudaDriverGetVersion(&version);
    return version / 1000 < CUDART_VERSION / 1000;
}

static cudaError_t check(int device) {
    if (is_driver_old()) return failed(cudaErrorInsufficientDriver);
    if (n_devices() == 0) return failed(cudaErrorNoDevice);
    return device >= 0 && device < n_devices() ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceCount(int *n) {
    *n = n_devices();
    return check(0);
}

cudaError_t cudaGetDevice(int *device) {
    *device = current_device;
    return check(current_device);
}

cudaError_t cudaSetDevice(int device) {
    const cudaError_t error = check(device);
    if (error == cudaSuccess) current_device = device;
    return error;
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
    return check(device);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    const cudaError_t error = check(device);
    if (error != cudaSuccess) return error;
    *properties = {};
    strcpy(properties->name, "GPU on cores");
    properties->totalGlobalMem = MEMORY_BYTES;
    properties->major = 9;
    return cudaSuccess;
}

/* So few processors that grids are small, and so many that they are more than one block. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    const cudaError_t error = check(device);
    *value = attribute == cudaDevAttrMultiProcessorCount ? 3 : 4096;
    return error;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    const cudaError_t error = check(current_device);
    if (error != cudaSuccess) return error;
    if (!kernel) return failed(cudaErrorInvalidDeviceFunction);
    if (!number_of("BPT_CODE_ON_CORES", 1)) return failed(cudaErrorNoKernelImageForDevice);
    *attributes = {90};
    return cudaSuccess;
}
