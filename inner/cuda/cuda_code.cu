/* nvcc compiles for the cards that CUDAARCHS names (BptCuda); no other runs what comes of it. */
#include "inner/cuda/cuda_device.cuh"

/* Compiled as all others are. */
static __global__ void any_kernel(void) {
}

bpt_status bpt_cuda_has_code(bool *has) {
    struct cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)any_kernel);
    *has = error == cudaSuccess;
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
        error == cudaErrorUnsupportedPtxVersion) {
        cudaGetLastError();
        return BPT_OK;
    }
    return *has ? BPT_OK : bpt_cuda_failed(error, "cudaFuncGetAttributes()", __FILE__, __LINE__);
}
