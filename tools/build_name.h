/** @file tools/build_name.h
 * By what one build of bpt is told from another. */
#ifndef BPT_TOOLS_BUILD_NAME_H
#define BPT_TOOLS_BUILD_NAME_H

enum { BPT_BUILD_NAME_SIZE = 32 };

/** The version, and digits that are the same where all sources of the programs are:
 * "0.1.0+1f3870be". With zeros behind it. Written while bpt is built, by
 * tools/cmake/NameBuild.cmake. */
extern const char bpt_build_name[BPT_BUILD_NAME_SIZE];

#endif
