# inner/cuda/ for GPUs that are made up: kernels are compiled as C++, CUDA's runtime is the one here, and in the place of
# what calls cuDNN and cuBLASLt is library.c. Adds them to bpt_inner; wants cuda_sources.
set(on_cores ${CMAKE_SOURCE_DIR}/tests/inner/gpu_on_cores)
file(GLOB runtime_sources CONFIGURE_DEPENDS ${on_cores}/*.c ${on_cores}/*.cpp)
list(FILTER runtime_sources EXCLUDE REGEX "/test_[^/]*$")
set(library_sources ${cuda_sources})
list(FILTER library_sources INCLUDE REGEX "/cuda_(library|conv|conv_search|engines|graph|product)\\.c$")
list(FILTER cuda_sources EXCLUDE REGEX "/cuda_(library|load|conv|conv_search|engines|graph|product)\\.c$")
set(kernel_sources ${cuda_sources})
list(FILTER kernel_sources INCLUDE REGEX "\\.cu$")

# What calls them itself, with libraries that are made up: for tests that link it before bpt_inner (libraries.h).
file(GLOB made_up_sources CONFIGURE_DEPENDS ${on_cores}/libraries/*.c)
add_library(bpt_libraries_on_cores OBJECT ${library_sources} ${made_up_sources})
target_include_directories(bpt_libraries_on_cores PRIVATE ${on_cores}/include)
target_compile_definitions(bpt_libraries_on_cores PRIVATE BPT_CUDA_DELAY_BYTES=4096)
target_link_libraries(bpt_libraries_on_cores PRIVATE bpt_base)

target_sources(bpt_inner PRIVATE ${cuda_sources} ${runtime_sources})
set_source_files_properties(${cuda_sources} ${runtime_sources} PROPERTIES INCLUDE_DIRECTORIES ${on_cores}/include)
# nvcc lets values be moved by words of another type, and unrolls loops where it is told to.
set_source_files_properties(${kernel_sources} PROPERTIES LANGUAGE CXX
  COMPILE_OPTIONS "-fno-strict-aliasing;-Wno-unknown-pragmas;-Wno-shadow" COMPILE_DEFINITIONS BPT_CUDA_MAX_BLOCKS=7)
# A jump to another stack is none that ends functions, which the address sanitizer would take it for: it is told of stacks
# instead. What is looked through for faults are the kernels.
set_source_files_properties(${on_cores}/grid.cpp ${on_cores}/products.c PROPERTIES COMPILE_OPTIONS "-O2;-fno-sanitize=all")
if(BPT_SANITIZE MATCHES address)
  set_source_files_properties(${on_cores}/grid.cpp PROPERTIES COMPILE_DEFINITIONS GPU_ON_CORES_IN_SANITIZER)
endif()
