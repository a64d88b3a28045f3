# The CUDA toolkit and cuDNN, which are not asked for where no GPU is to be used. Sets BPT_CUDA_FOUND.
#
# CUDA's runtime is linked statically, cuDNN and cuBLASLt are loaded when a GPU is opened
# (inner/cuda/cuda_libraries.c): a program starts on a machine that has none of them.

set(BPT_CUDA_FOUND OFF)
if(BPT_CUDA STREQUAL "OFF" OR (BPT_CUDA STREQUAL "AUTO" AND BPT_SANITIZE))
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90) # machine code for both, and PTX for what comes later
  endif()
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  enable_language(CUDA)
  find_package(CUDAToolkit 12.0)
  find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
endif()

if(CUDAToolkit_FOUND AND CUDNN_INCLUDE_DIR)
  set(BPT_CUDA_FOUND ON)
  message(STATUS "CUDA ${CUDAToolkit_VERSION}: --device cuda is built in")
elseif(BPT_CUDA STREQUAL "ON")
  message(FATAL_ERROR "BPT_CUDA=ON needs nvcc of CUDA 12 or later and cudnn.h of cuDNN 9: name them with "
    "-DCMAKE_CUDA_COMPILER=... and -DCUDNN_INCLUDE_DIR=..., or build without (-DBPT_CUDA=OFF)")
else()
  message(STATUS "No CUDA toolkit with cuDNN: built without --device cuda")
endif()
