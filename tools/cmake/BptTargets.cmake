# How a folder becomes a target. A folder is one static library made of every source in it, so
# that adding a layer, a rule or an importer touches no build file.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
find_package(Threads REQUIRED)

add_library(bpt_flags INTERFACE)
target_compile_definitions(bpt_flags INTERFACE _GNU_SOURCE BPT_VERSION="${PROJECT_VERSION}")
target_include_directories(bpt_flags INTERFACE ${CMAKE_SOURCE_DIR})
# No contraction into fused multiply-add: the same source gives the same bits on every machine.
set(bpt_c_options -Wall -Wextra -Wshadow -Wstrict-prototypes
  -Wmissing-prototypes -Wvla -Wundef -Wpointer-arith -Wformat=2 -ffp-contract=off
  $<$<BOOL:${BPT_WERROR}>:-Werror>)
target_compile_options(bpt_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:${bpt_c_options}>")
set(bpt_cxx_options -Wall -Wextra -Wshadow -Wundef -ffp-contract=off $<$<BOOL:${BPT_WERROR}>:-Werror>)
target_compile_options(bpt_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${bpt_cxx_options}>")
target_link_libraries(bpt_flags INTERFACE Threads::Threads m)
if(BPT_SANITIZE)
  target_compile_options(bpt_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${BPT_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  target_link_options(bpt_flags INTERFACE -fsanitize=${BPT_SANITIZE})
endif()
if(BPT_FUZZ)
  target_compile_options(bpt_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
endif()
if(BPT_SANITIZE MATCHES address)
  add_library(bpt_keep_libraries OBJECT ${CMAKE_SOURCE_DIR}/tests/keep_libraries.c)
  target_sources(bpt_flags INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:bpt_keep_libraries>>)
endif()

# bpt_folder(NAME LINK targets...): library bpt_NAME from all sources of this folder.
# RECURSE: sources of its subfolders too. WITHOUT: a subfolder that is left out.
function(bpt_folder name)
  cmake_parse_arguments(arg "RECURSE" "WITHOUT" "LINK" ${ARGN})
  if(arg_RECURSE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.c)
  else()
    file(GLOB sources CONFIGURE_DEPENDS *.c)
  endif()
  if(arg_WITHOUT)
    file(GLOB_RECURSE left_out ${arg_WITHOUT}/*.c)
    list(REMOVE_ITEM sources ${left_out})
  endif()
  if(sources)
    add_library(bpt_${name} STATIC ${sources})
    target_link_libraries(bpt_${name} PUBLIC bpt_flags ${arg_LINK})
  endif()
endfunction()

# bpt_test_folder(NAME LINK targets...): one binary and one ctest per test_*.c of this folder;
# helpers (every other *.c) are a library that each is linked with. A line "ctest: LABEL... TIMEOUT=SECONDS
# RANKS=N,N" in the first comment of a test sets its labels, its time limit, and the numbers of
# MPI ranks that it is run on. WITHOUT: regular expression of files that are left out.
function(bpt_test_folder name)
  cmake_parse_arguments(arg "" "WITHOUT" "LINK" ${ARGN})
  file(GLOB tests CONFIGURE_DEPENDS test_*.c)
  file(GLOB helpers CONFIGURE_DEPENDS *.c)
  if(arg_WITHOUT)
    list(FILTER tests EXCLUDE REGEX "${arg_WITHOUT}")
    list(FILTER helpers EXCLUDE REGEX "${arg_WITHOUT}")
  endif()
  list(FILTER helpers EXCLUDE REGEX "/(test|bench|fuzz)_[^/]*$")
  set(helper_library "")
  if(helpers)
    set(helper_library bpt_${name}_test_helpers)
    add_library(${helper_library} STATIC ${helpers})
    target_link_libraries(${helper_library} PUBLIC ${arg_LINK} cmocka)
  endif()
  foreach(source ${tests})
    get_filename_component(test ${source} NAME_WE)
    add_executable(${test} ${source})
    target_link_libraries(${test} PRIVATE ${helper_library} ${arg_LINK} cmocka)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} line REGEX "ctest:" LIMIT_COUNT 1)
    set(labels ${name})
    set(timeout 60)
    set(ranks "")
    string(REGEX REPLACE ".*ctest:" "" line "${line}")
    string(REGEX MATCHALL "[^ */]+" words "${line}")
    foreach(word ${words})
      if(word MATCHES "^TIMEOUT=(.*)$")
        set(timeout ${CMAKE_MATCH_1})
      elseif(word MATCHES "^RANKS=(.*)$")
        string(REPLACE "," ";" ranks ${CMAKE_MATCH_1})
      else()
        list(APPEND labels ${word})
      endif()
    endforeach()
    if(ranks)
      foreach(n ${ranks})
        bpt_add_test(${test}.np${n} "${labels};mpi" ${timeout} ${BPT_MPIRUN} -np ${n} $<TARGET_FILE:${test}>)
        set_tests_properties(${test}.np${n} PROPERTIES PROCESSORS 2)
      endforeach()
    else()
      bpt_add_test(${test} "${labels}" ${timeout} $<TARGET_FILE:${test}>)
    endif()
  endforeach()
endfunction()

# bpt_add_test(NAME LABELS TIMEOUT COMMAND...): a ctest in the environment that all tests share, but for a folder of
# its own for Open MPI: of a folder that jobs share, one that ends removes what another has just begun to fill. Tests of
# the label gpu have a GPU of cores where those are built for; those of the label once are left out under the address sanitizer,
# which would see nothing there that other tests do not show them.
function(bpt_add_test name labels timeout)
  if(BPT_SANITIZE)
    math(EXPR timeout "${timeout} * 5")
  endif()
  set(environment ${BPT_TEST_ENVIRONMENT})
  if("gpu" IN_LIST labels AND BPT_CUDA_ON_CORES)
    list(APPEND environment BPT_GPUS_ON_CORES=1) # of all tests these alone find GPUs
  endif()
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout}
    COST ${timeout} # those that may take long begin before others
    SKIP_RETURN_CODE 77
    ENVIRONMENT "${environment};OMPI_MCA_orte_tmpdir_base=${CMAKE_BINARY_DIR}/mpi/${name}")
  if("gpu" IN_LIST labels AND NOT BPT_CUDA_ON_CORES)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK gpu) # some take nearly all of its memory
  endif()
  if("once" IN_LIST labels AND BPT_SANITIZE MATCHES address)
    set_tests_properties(${name} PROPERTIES DISABLED TRUE)
  endif()
endfunction()
