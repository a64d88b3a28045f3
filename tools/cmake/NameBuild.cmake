# cmake -DSOURCE_DIR=... -DVERSION=... -DOUT=FILE.c -P NameBuild.cmake: writes bpt_build_name (tools/build_name.h), the
# version and eight digits of what all sources of the programs come to. Of sources and not of a commit, so that a copy
# without its history is the same build, and a commit that changes words alone no other one.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/BuildName.cmake)
bpt_program_sources(sources "${SOURCE_DIR}")
set(sums "")
foreach(source ${sources})
  file(SHA256 "${SOURCE_DIR}/${source}" sum)
  string(APPEND sums "${source} ${sum}\n")
endforeach()
string(SHA256 digest "${sums}")
string(SUBSTRING ${digest} 0 8 digest)
file(WRITE "${OUT}" "#include \"tools/build_name.h\"\n\nconst char bpt_build_name[BPT_BUILD_NAME_SIZE] = \"${VERSION}+${digest}\";\n")
