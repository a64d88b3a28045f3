#include "storage/dataset/names.h"
#include "storage/writer/writer.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/program.h"

static bpt_status missing(const bpt_command *usage, const char *what) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s is missing", what);
    bpt_hint("usage: %s %s", usage->name, usage->synopsis);
    return status;
}

bpt_status bpt_ingest_check_target(const bpt_command *usage, const char *out, const char *split) {
    if (!bpt_program_has(out)) return missing(usage, "--out DATASET");
    if (!bpt_program_has(split)) return missing(usage, "--split NAME");
    BPT_TRY(bpt_split_name_check(split));
    return bpt_writer_check_place(out);
}

bpt_status bpt_ingest_check_source(const bpt_command *usage, const char *split, const char *to) {
    if (!bpt_program_has(split)) return missing(usage, "--split NAME");
    return bpt_program_has(to) ? BPT_OK : missing(usage, "--to PATH");
}
