#include "base/options.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/yaml.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const char *version = BPT_VERSION; /* what --version says */

enum { LIST_TEXT_SIZE = BPT_OPTION_LIST_MAX * sizeof "-9223372036854775808," };

/* What a configuration file says of an option, whether it counts or not. */
typedef struct {
    const bpt_option *option;
    size_t file; /* from 1 on, in their order */
    const char *text;
} entry;

struct bpt_option_set {
    const bpt_command *command;
    void *values;
    bpt_option_source *sources; /* shape [n_options] */
    size_t *files;              /* that have the values, of source FILE alone; shape [n_options] */
    entry *entries;             /* of all files, one file after the other */
    size_t n_entries, entries_capacity;
    char **texts; /* owned strings that values and entries point to */
    size_t n_texts, texts_capacity;
    const char **configs; /* of --config, borrowed from argv, shape [n_configs] */
    size_t n_configs, configs_capacity;
    char **operands; /* borrowed from argv, shape [n_operands] */
    size_t n_operands, operands_capacity;
};

static const bpt_option *find_option(const bpt_command *c, const char *name, size_t length) {
    for (size_t i = 0; i < c->n_options; i++) {
        const char *candidate = c->options[i].name;
        if (strlen(candidate) == length && strncmp(candidate, name, length) == 0)
            return &c->options[i];
    }
    return NULL;
}

static const bpt_option *find_letter(const bpt_command *c, char letter) {
    for (size_t i = 0; i < c->n_options; i++)
        if (c->options[i].letter == letter) return &c->options[i];
    return NULL;
}

static bpt_status keep_text(bpt_option_set *set, const char *text, const char **out) {
    BPT_TRY(BPT_GROW("option texts", set->n_texts + 1, &set->texts, &set->texts_capacity));
    BPT_TRY(bpt_strdup(text, &set->texts[set->n_texts]));
    *out = set->texts[set->n_texts++];
    return BPT_OK;
}

static bpt_status assign(bpt_option_set *set, const bpt_option *o, const char *text,
                         bpt_option_source source) {
    if (o->type == BPT_OPTION_TEXT) BPT_TRY(keep_text(set, text, &text));
    BPT_TRY(bpt__option_parse(o, text, (char *)set->values + o->offset));
    set->sources[o - set->command->options] = source;
    return BPT_OK;
}

static bpt_status assign_defaults(bpt_option_set *set) {
    for (size_t i = 0; i < set->command->n_options; i++) {
        const bpt_option *o = &set->command->options[i];
        bpt__option_clear(o, (char *)set->values + o->offset);
        if (o->value) BPT_TRY(assign(set, o, o->value, BPT_SOURCE_DEFAULT));
    }
    return BPT_OK;
}

/* ---- sources ---- */

/* @return the option that other programs call @p name, NULL if the command has none such */
static const char *find_alias(const bpt_command *c, const char *name) {
    for (const bpt_option_alias *a = c->aliases; a && a->name; a++)
        if (strcmp(a->name, name) == 0 && find_option(c, a->option, strlen(a->option)))
            return a->option;
    return NULL;
}

/* @param where "", or " in FILE:LINE": there --help, --version and --config are no help */
static bpt_status unknown_option(const bpt_command *c, const char *name, const char *where) {
    const char *nearest = find_alias(c, name);
    const char **names;
    const size_t n_names = c->n_options + (*where ? 0 : 3);
    BPT_TRY(BPT_NEW("option names", c->n_options + 3, &names));
    for (size_t i = 0; i < c->n_options; i++) names[i] = c->options[i].name;
    names[c->n_options] = "help";
    names[c->n_options + 1] = "version";
    names[c->n_options + 2] = "config";
    if (!nearest) nearest = bpt_nearest(name, names, n_names);
    bpt_free(names);
    const bpt_status status = bpt_fail(BPT_EUSAGE, "unknown option \"%s\"%s", name, where);
    if (nearest)
        bpt_hint("did you mean \"%s\"? `%s --help` lists all options", nearest, c->name);
    else
        bpt_hint("`%s --help` lists all options", c->name);
    return status;
}

/* The value of an option as it would stand on the command line.
 * @param joined memory for the numbers of a list */
static bpt_status text_of_value(const bpt_yaml *doc, const bpt_yaml_node *value,
                                const bpt_option *o, char joined[LIST_TEXT_SIZE],
                                const char **text) {
    const bool numbers = o->type == BPT_OPTION_PAIR || o->type == BPT_OPTION_LIST;
    *text = bpt_yaml_text(value);
    if (*text) return BPT_OK;
    if (!numbers || bpt_yaml_node_kind(value) != BPT_YAML_LIST) {
        const bpt_status status =
            bpt_yaml_fail(doc, value, "%s takes %s", o->name,
                          numbers ? "whole numbers, like [8, 14]" : "one value");
        if (!numbers) bpt_hint("write it as on the command line, without brackets and dashes");
        return status;
    }
    if (bpt_yaml_size(value) > BPT_OPTION_LIST_MAX)
        return bpt_yaml_fail(doc, value, "%s: %zu numbers, more than %d", o->name,
                             bpt_yaml_size(value), BPT_OPTION_LIST_MAX);
    size_t length = 0;
    joined[0] = '\0';
    for (size_t i = 0; i < bpt_yaml_size(value); i++) {
        int64_t number;
        BPT_TRY(
            bpt_yaml_get_int(doc, bpt_yaml_at(value, i), o->name, INT64_MIN, INT64_MAX, &number));
        length += (size_t)snprintf(joined + length, LIST_TEXT_SIZE - length, "%s%" PRId64,
                                   i == 0                       ? ""
                                   : o->type == BPT_OPTION_PAIR ? " "
                                                                : ",",
                                   number);
    }
    *text = joined;
    return BPT_OK;
}

static bpt_status note_entry(bpt_option_set *set, const bpt_option *o, size_t file,
                             const char *text) {
    BPT_TRY(
        BPT_GROW("entries of files", set->n_entries + 1, &set->entries, &set->entries_capacity));
    BPT_TRY(keep_text(set, text, &text));
    set->entries[set->n_entries++] = (entry){o, file, text};
    return BPT_OK;
}

/* Takes the value of an option from a file unless the command line has one. */
static bpt_status take_entry(bpt_option_set *set, size_t file, const bpt_yaml *doc,
                             const bpt_yaml_node *value, const bpt_option *o) {
    const size_t index = (size_t)(o - set->command->options);
    char joined[LIST_TEXT_SIZE];
    const char *text;
    BPT_TRY(text_of_value(doc, value, o, joined, &text));
    BPT_TRY(note_entry(set, o, file, text));
    if (set->sources[index] == BPT_SOURCE_COMMAND_LINE) return BPT_OK;
    set->files[index] = file;
    const bpt_status status = assign(set, o, text, BPT_SOURCE_FILE);
    if (status != BPT_EUSAGE) return status;
    const bpt_error error = *bpt_error_last();
    const bool named = strncmp(error.text, "--", 2) == 0; /* the file names it without */
    bpt_yaml_fail(doc, value, "%.400s", error.text + (named ? 2 : 0));
    if (error.hint[0]) bpt_hint("%s", error.hint);
    return status;
}

/* A run's folder is not what repeats the run: a file in it is. */
static bpt_status read_config(const char *path, bpt_yaml **doc) {
    const bpt_status status = bpt_yaml_load(path, doc);
    if (status == BPT_OK || bpt_error_last()->hint[0]) return status;
    if (bpt_path_is_folder(path) || !bpt_path_exists(path))
        bpt_hint("--config takes a YAML file, such as the config.yaml of a run's folder");
    return status;
}

/* @param file from 1 on */
static bpt_status load_config(bpt_option_set *set, size_t file) {
    const char *path = set->configs[file - 1];
    bpt_yaml *doc;
    BPT_TRY(read_config(path, &doc));
    const bpt_yaml_node *root = bpt_yaml_root(doc);
    bpt_status status = BPT_OK;
    if (bpt_yaml_node_kind(root) != BPT_YAML_MAP)
        status = bpt_yaml_fail(doc, root, "a configuration is a map (option: value)");
    for (size_t i = 0; status == BPT_OK && i < bpt_yaml_size(root); i++) {
        const char *key = bpt_yaml_key(root, i);
        const bpt_yaml_node *value = bpt_yaml_at(root, i);
        const bpt_option *o = find_option(set->command, key, strlen(key));
        if (!o) {
            char where[300];
            snprintf(where, sizeof where, " in %s:%d", path, bpt_yaml_line(value));
            status = unknown_option(set->command, key, where);
        } else {
            status = take_entry(set, file, doc, value, o);
        }
    }
    bpt_yaml_free(doc);
    return status;
}

typedef struct {
    int argc;
    char **argv;
    int next; /* index of the next argument */
    bpt_option_request request;
} scan;

static bpt_status take_value(scan *s, const char *name, const char *attached, const char **value) {
    if (attached) {
        *value = attached;
        return BPT_OK;
    }
    if (s->next >= s->argc) return bpt_fail(BPT_EUSAGE, "--%s needs a value", name);
    *value = s->argv[s->next++];
    return BPT_OK;
}

static bpt_status take_option(bpt_option_set *set, scan *s, const bpt_option *o,
                              const char *attached) {
    if (o->type == BPT_OPTION_FLAG)
        return assign(set, o, attached ? attached : "true", BPT_SOURCE_COMMAND_LINE);
    const char *value;
    BPT_TRY(take_value(s, o->name, attached, &value));
    if (o->type == BPT_OPTION_PAIR && !attached && !strchr(value, 'x')) {
        const char *second;
        char pair[64];
        if (s->next >= s->argc)
            return bpt_fail(BPT_EUSAGE, "--%s takes two whole numbers like 32 48 or 32x48",
                            o->name);
        BPT_TRY(take_value(s, o->name, NULL, &second));
        const int length = snprintf(pair, sizeof pair, "%s %s", value, second);
        if ((size_t)length >= sizeof pair) /* too long for two numbers: show the longer one */
            return bpt_fail(BPT_EUSAGE, "--%s: \"%s\" is not a whole number", o->name,
                            strlen(value) > strlen(second) ? value : second);
        return assign(set, o, pair, BPT_SOURCE_COMMAND_LINE);
    }
    return assign(set, o, value, BPT_SOURCE_COMMAND_LINE);
}

static bpt_status take_config(bpt_option_set *set, scan *s, const char *attached) {
    BPT_TRY(BPT_GROW("configurations", set->n_configs + 1, &set->configs, &set->configs_capacity));
    BPT_TRY(take_value(s, "config", attached, &set->configs[set->n_configs]));
    set->n_configs++;
    return BPT_OK;
}

static bpt_status take_long(bpt_option_set *set, scan *s, const char *argument) {
    const char *name = argument + 2;
    const size_t length = strcspn(name, "=");
    const char *attached = name[length] ? name + length + 1 : NULL;
    const bpt_option *o = find_option(set->command, name, length);
    if (o) return take_option(set, s, o, attached);
    const bool help = length == 4 && strncmp(name, "help", 4) == 0;
    if (help || (length == 7 && strncmp(name, "version", 7) == 0)) {
        if (attached) return bpt_fail(BPT_EUSAGE, "--%.*s takes no value", (int)length, name);
        s->request = help ? BPT_REQUEST_HELP : BPT_REQUEST_VERSION;
        return BPT_OK;
    }
    if (length == 6 && strncmp(name, "config", 6) == 0) return take_config(set, s, attached);
    char unknown[80];
    snprintf(unknown, sizeof unknown, "%.*s", (int)(length < 79 ? length : 79), name);
    return unknown_option(set->command, unknown, "");
}

/* -model FILE would be -m with the value "odel": nobody means that. */
static bpt_status one_dash(const bpt_command *c, const char *argument) {
    const int length = (int)strcspn(argument + 1, "=");
    const bpt_status status = bpt_fail(BPT_EUSAGE, "unknown option \"%.*s\"", length + 1, argument);
    bpt_hint("long options have two dashes: --%.*s; `%s --help` lists all options", length,
             argument + 1, c->name);
    return status;
}

static bpt_status take_argument(bpt_option_set *set, scan *s, bool *options_over) {
    char *argument = s->argv[s->next++];
    if (!*options_over && strcmp(argument, "--") == 0) {
        *options_over = true;
        return BPT_OK;
    }
    if (!*options_over && argument[0] == '-' && argument[1] == '-')
        return take_long(set, s, argument);
    if (!*options_over && argument[0] == '-' && argument[1]) {
        if (argument[2] && find_option(set->command, argument + 1, strcspn(argument + 1, "=")))
            return one_dash(set->command, argument);
        const bpt_option *o = find_letter(set->command, argument[1]);
        if (!o) return unknown_option(set->command, argument, "");
        return take_option(set, s, o, argument[2] ? argument + 2 : NULL);
    }
    BPT_TRY(BPT_GROW("operands", set->n_operands + 1, &set->operands, &set->operands_capacity));
    set->operands[set->n_operands++] = argument;
    return BPT_OK;
}

static bpt_status check_operands(const bpt_option_set *set) {
    const bpt_command *c = set->command;
    const int n = (int)set->n_operands;
    if (n >= c->min_operands && (c->max_operands < 0 || n <= c->max_operands)) return BPT_OK;
    bpt_status status;
    if (n < c->min_operands)
        status = bpt_fail(BPT_EUSAGE, "%d argument%s missing", c->min_operands - n,
                          c->min_operands - n == 1 ? " is" : "s are");
    else
        status = bpt_fail(BPT_EUSAGE, "unexpected argument \"%s\"", set->operands[c->max_operands]);
    bpt_hint("usage: %s %s", c->name, c->synopsis);
    return status;
}

static bpt_status parse_into(bpt_option_set *set, scan *s) {
    BPT_TRY(assign_defaults(set));
    bool options_over = false;
    while (s->next < s->argc && s->request == BPT_REQUEST_RUN)
        BPT_TRY(take_argument(set, s, &options_over));
    if (s->request == BPT_REQUEST_HELP) {
        bpt_options_help(set->command, stdout);
        return BPT_OK;
    }
    if (s->request == BPT_REQUEST_VERSION) {
        printf("%.*s %s\n", (int)strcspn(set->command->name, " "), set->command->name, version);
        return BPT_OK;
    }
    for (size_t file = 1; file <= set->n_configs; file++) BPT_TRY(load_config(set, file));
    return check_operands(set);
}

void bpt_options_name_version(const char *name) {
    version = name;
}

bpt_status bpt_options_parse(const bpt_command *command, int argc, char **argv, void *values,
                             bpt_option_request *request, bpt_option_set **out) {
    bpt_option_set *set;
    BPT_TRY(BPT_NEW("options", 1, &set));
    set->command = command;
    set->values = values;
    bpt_status status;
    scan s = {.argc = argc, .argv = argv, .next = 1, .request = BPT_REQUEST_RUN};
    BPT_TRY_GOTO(status, BPT_NEW("option sources", command->n_options, &set->sources), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("files of options", command->n_options, &set->files), err_free);
    BPT_TRY_GOTO(status, parse_into(set, &s), err_free);
    *request = s.request;
    *out = set;
    return BPT_OK;
err_free:
    bpt_option_set_free(set);
    return status;
}

void bpt_option_set_free(bpt_option_set *set) {
    if (!set) return;
    for (size_t i = 0; i < set->n_texts; i++) bpt_free(set->texts[i]);
    bpt_free(set->texts);
    bpt_free(set->operands);
    bpt_free(set->sources);
    bpt_free(set->files);
    bpt_free(set->entries);
    bpt_free(set->configs);
    bpt_free(set);
}

void bpt_option_copy(const bpt_command *command, const char *name, const void *from, void *to) {
    const bpt_option *o = find_option(command, name, strlen(name));
    assert(o);
    memcpy((char *)to + o->offset, (const char *)from + o->offset, bpt__option_size(o));
}

char *const *bpt_option_operands(const bpt_option_set *set, int *n) {
    *n = (int)set->n_operands;
    return set->operands;
}

bpt_option_source bpt_option_where(const bpt_option_set *set, const char *name) {
    const bpt_option *o = find_option(set->command, name, strlen(name));
    return o ? set->sources[o - set->command->options] : BPT_SOURCE_DEFAULT;
}

bool bpt_option_is_default(const bpt_command *command, const char *name, const void *values) {
    const bpt_option *o = find_option(command, name, strlen(name));
    return o && bpt__option_is_default(o, (const char *)values + o->offset);
}

const char *bpt_option_beside(const bpt_option_set *set, const char *name, const char *option) {
    const bpt_option *wanted = find_option(set->command, name, strlen(name));
    const bpt_option *o = find_option(set->command, option, strlen(option));
    const size_t last = o ? set->files[o - set->command->options] : 0;
    const char *text = NULL;
    for (size_t i = 0; i < set->n_entries && set->entries[i].file <= last; i++)
        if (set->entries[i].option == wanted) text = set->entries[i].text;
    return text;
}
