# By what a build is told from another: bpt_build_name (tools/build_name.h).

# bpt_program_sources(OUT ROOT [CONFIGURE_DEPENDS]): all sources of the programs in the source tree ROOT, relative to it.
# Not what an editor keeps beside one that is open: its name begins with a dot, and it may be a link to nothing.
function(bpt_program_sources out root)
  string(REGEX REPLACE "([[*?])" "[\\1]" pattern_of_root "${root}")
  set(kinds "")
  foreach(folder base inner outer scheduler storage tools)
    foreach(kind c h cu cuh)
      list(APPEND kinds "${pattern_of_root}/${folder}/[!.]*.${kind}")
    endforeach()
  endforeach()
  file(GLOB_RECURSE found RELATIVE "${root}" ${ARGN} ${kinds})
  list(SORT found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# bpt_name_build(OUT): a source file with the name, made again when any of the programs' sources is changed.
function(bpt_name_build out)
  set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set(name ${CMAKE_BINARY_DIR}/build_name.c) # no source of the programs, also where the build is in the source tree
  set(list ${CMAKE_BINARY_DIR}/program_sources.txt) # written where one came, went or has another name
  bpt_program_sources(sources ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS)
  file(GENERATE OUTPUT ${list} CONTENT "${sources}\n")
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${name} VERBATIM COMMENT "Naming this build by its sources"
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -DOUT=${name}
      -P ${here}/NameBuild.cmake
    DEPENDS ${sources} ${list} ${here}/NameBuild.cmake ${here}/BuildName.cmake)
  set(${out} ${name} PARENT_SCOPE)
endfunction()
