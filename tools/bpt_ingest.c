/* bpt-ingest: makes datasets of images, and looks at them. */
#include "base/memory.h"
#include "tools/build_name.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/program.h"

#include <stdio.h>
#include <string.h>

static const bpt_ingest_command *const commands[] = {
    &bpt_ingest_folder, &bpt_ingest_list,    &bpt_ingest_webdataset, &bpt_ingest_caffe,
    &bpt_ingest_idx,    &bpt_ingest_cifar,   &bpt_ingest_glyphs,     &bpt_ingest_info,
    &bpt_ingest_verify, &bpt_ingest_montage, &bpt_ingest_merge,      &bpt_ingest_split,
    &bpt_ingest_export,
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_help(void) {
    puts(
        "usage: bpt-ingest COMMAND [argument...]\n"
        "\n"
        "Makes datasets for bpt-train. A split appears in a dataset only when it is whole, "
        "whatever\n"
        "happens meanwhile.\n"
        "\n"
        "commands:");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  bpt-ingest %s %s\n      %s\n", commands[i]->name, commands[i]->usage->synopsis,
               commands[i]->usage->summary);
    puts(
        "\n"
        "`bpt-ingest COMMAND --help` lists the options of a command.\n"
        "\n"
        "examples:\n"
        "  bpt-ingest idx train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz --out mnist "
        "--split train\n"
        "  bpt-ingest folder flowers/train --out flowers224 --split train --short-side 256 \\\n"
        "      --crop 224 224\n"
        "  bpt-ingest glyphs --out glyphs --split test --count 2000\n"
        "  bpt-ingest info mnist\n"
        "\n" BPT_INGEST_EXIT_STATUS);
}

static const bpt_ingest_command *find_command(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i]->name) == 0) return commands[i];
    return NULL;
}

/* An option stands where the command should. */
static bpt_status command_is_late(int argc, char **argv) {
    const bpt_ingest_command *later = NULL;
    for (int i = 2; i < argc && !later; i++) later = find_command(argv[i]);
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "the first argument is \"%s\", and no command", argv[1]);
    if (later)
        bpt_hint("the command comes first: bpt-ingest %s %s", later->name, later->usage->synopsis);
    else
        bpt_hint("`bpt-ingest --help` lists all commands; options come behind them");
    return status;
}

static bpt_status unknown_command(const char *name) {
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++) names[i] = commands[i]->name;
    const char *nearest = bpt_nearest(name, names, N_COMMANDS);
    const bpt_status status = bpt_fail(BPT_EUSAGE, "unknown command \"%s\"", name);
    if (nearest)
        bpt_hint("did you mean \"%s\"? `bpt-ingest --help` lists all commands", nearest);
    else
        bpt_hint("`bpt-ingest --help` lists all commands");
    return status;
}

static bpt_status run(int argc, char **argv) {
    const bpt_ingest_command *command = find_command(argv[1]);
    if (command) return command->run(argc - 1, argv + 1);
    return argv[1][0] == '-' ? command_is_late(argc, argv) : unknown_command(argv[1]);
}

int main(int argc, char **argv) {
    bpt_program_begin();
    bpt_memory_keep(); /* LMDB allocates the pages of each transaction anew */
    if (argc == 1) {
        print_help();
        return bpt_program_no_arguments("bpt-ingest");
    }
    if (strcmp(argv[1], "--help") == 0) {
        print_help();
        return bpt_program_end("bpt-ingest", BPT_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("bpt-ingest %s\n", bpt_build_name);
        return bpt_program_end("bpt-ingest", BPT_OK);
    }
    return bpt_program_end("bpt-ingest", run(argc, argv));
}
