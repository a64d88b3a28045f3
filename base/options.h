/** @file base/options.h
 * The option table: one row per option yields parsing, --help, the key in a configuration file, the
 * range error and the printed effective configuration.
 *
 * Command line before configuration files before default, and of several files later ones before
 * earlier ones. An unknown option is an error that proposes the one that other programs call so, or
 * the nearest one; a value out of range is refused, never clamped. Every command also has --help,
 * --version and --config FILE (YAML; keys are the option names), which may be given several times.
 *
 * Threads: one thread. */
#ifndef BPT_BASE_OPTIONS_H
#define BPT_BASE_OPTIONS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Type of an option and of the field it sets. */
typedef enum bpt_option_type {
    BPT_OPTION_FLAG,   /* bool: --name; in a file true or false */
    BPT_OPTION_INT,    /* int64_t */
    BPT_OPTION_SIZE,   /* uint64_t; bytes, takes K, M, G (powers of 1024) */
    BPT_OPTION_REAL,   /* double */
    BPT_OPTION_TEXT,   /* const char *, owned by the option set; NULL if there is no default */
    BPT_OPTION_CHOICE, /* int: index into .choices */
    BPT_OPTION_PAIR,   /* int64_t[2]: --name A B or AxB; in a file [A, B], "A B" or AxB */
    BPT_OPTION_LIST,   /* int64_t[BPT_OPTION_LIST_MAX], unused ones -1: 8,14,18; in a file also
                        * [8, 14, 18] */
} bpt_option_type;

enum { BPT_OPTION_LIST_MAX = 16 };

/** One row of the table. */
typedef struct bpt_option {
    const char *name; /* "batch-size" for --batch-size and the key batch-size */
    char letter;      /* 'b' for -b, 0 for none */
    bpt_option_type type;
    size_t offset;       /* of the field: offsetof(struct, field) */
    const char *value;   /* default as text; NULL: none (0, false, NULL, -1s) */
    double min, max;     /* inclusive, for numbers; both 0: any */
    const char *unit;    /* what stands for the value in --help: "STEPS", "FILE" */
    const char *choices; /* "auto|cpu|cuda" for a choice */
    const char *group;   /* heading in --help; NULL: as the row before */
    const char *help;    /* one sentence; may hold newlines */

    /** Of a text, may be NULL.
     * @return BPT_OK, BPT_EUSAGE (with hint): it is none of this option */
    bpt_status (*check)(const char *text);
} bpt_option;

/** A name that other programs have for an option: it is refused as any unknown one, and the option
 * proposed. */
typedef struct bpt_option_alias {
    const char *name, *option; /* "learning-rate", "lr" */
} bpt_option_alias;

/** A command: what --help is made from. All texts are borrowed for ever. */
typedef struct bpt_command {
    const char *name;     /* "bpt-train", "bpt-ingest idx" */
    const char *synopsis; /* "--data DATASET --model NAME --output RUN [option...]" */
    const char *summary;  /* one or two sentences */
    const char *epilogue; /* exit status, examples; may be NULL */
    const bpt_option *options;
    size_t n_options;
    int min_operands, max_operands; /* arguments that are no options; max -1: any number */
    /* Up to one without a name, also of options that this command lacks; NULL: none. */
    const bpt_option_alias *aliases;
} bpt_command;

typedef enum bpt_option_source {
    BPT_SOURCE_DEFAULT,
    BPT_SOURCE_FILE,
    BPT_SOURCE_COMMAND_LINE,
} bpt_option_source;

/** What the user asked for. */
typedef enum bpt_option_request {
    BPT_REQUEST_RUN,
    BPT_REQUEST_HELP,    /* printed to stdout already: exit 0 */
    BPT_REQUEST_VERSION, /* likewise */
} bpt_option_request;

typedef struct bpt_option_set bpt_option_set;

/** Parses a command line (and the files of --config) into a struct.
 * Options and operands may be mixed; "--" ends the options; "--name=value" works.
 * @param command borrowed while the set lives
 * @param argv    shape [argc]; argv[0] is skipped
 * @param values  the struct that the rows' offsets refer to; filled with defaults first
 * @param[out] set caller owns, bpt_option_set_free(); owns the texts in @p values
 * @return BPT_OK, BPT_EUSAGE (with hint; also no such configuration file), BPT_EIO (it cannot be
 *         read), BPT_ENOMEM */
bpt_status bpt_options_parse(const bpt_command *command, int argc, char **argv, void *values,
                             bpt_option_request *request, bpt_option_set **set);

/** Says what --version prints from now on, in the place of BPT_VERSION.
 * @param name borrowed */
void bpt_options_name_version(const char *name);

void bpt_option_set_free(bpt_option_set *set);

/** @return operands in order, shape [*n]; borrowed from the set */
char *const *bpt_option_operands(const bpt_option_set *set, int *n);

/** @return where the value of option @p name (which must be in the table) comes from */
bpt_option_source bpt_option_where(const bpt_option_set *set, const char *name);

/** @return whether option @p name (which must be in the table) has its default, wherever it comes
 * from
 * @param values the struct that bpt_options_parse() filled */
bool bpt_option_is_default(const bpt_command *command, const char *name, const void *values);

/** @return what configuration files say of option @p name, up to the one that @p option has its
 * value from and whatever comes later, as text: what that value was meant for. NULL where they say
 * nothing, or its value is of no file. Borrowed from the set */
const char *bpt_option_beside(const bpt_option_set *set, const char *name, const char *option);

/** Prints the effective configuration as YAML that --config reads back. Options without a value
 * are left out.
 * @param values the struct that bpt_options_parse() filled */
void bpt_options_print(const bpt_command *command, const void *values, FILE *out);

/** Looks whether bpt_options_print() could be read back: bytes that are no UTF-8, as paths may
 * have, could not.
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_options_check_texts(const bpt_command *command, const void *values);

/** Copies the value of option @p name (which must be in the table) from one struct to another. A
 * text stays that of the set that @p from was filled with. */
void bpt_option_copy(const bpt_command *command, const char *name, const void *from, void *to);

/** Prints the help text. */
void bpt_options_help(const bpt_command *command, FILE *out);

/** @return the entry of @p names that is nearest to @p word by edit distance, NULL if none is near
 * @param names shape [n] */
const char *bpt_nearest(const char *word, const char *const *names, size_t n);

#endif
