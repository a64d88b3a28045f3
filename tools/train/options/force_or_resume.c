#include "tools/train/options/force_or_resume.h"

#include "tools/train/options/option_uses.h"

#include <string.h>

/* @return the length of the next name of a path, which "." is none of; 0 at its end */
static size_t next_name(const char **path, const char **name) {
    size_t length = 0;
    do {
        *path += strspn(*path, "/");
        length = strcspn(*path, "/");
        *name = *path;
        *path += length;
    } while (length == 1 && **name == '.');
    return length;
}

/* Whether what is left of a path leads upwards. */
static bool climbs(const char *rest) {
    const char *name;
    for (size_t n; (n = next_name(&rest, &name)) > 0;)
        if (n == 2 && memcmp(name, "..", 2) == 0) return true;
    return false;
}

static bool is_named_within(const char *path, const char *folder) {
    const char *a, *b;
    if ((path[0] == '/') != (folder[0] == '/')) return false;
    for (size_t n; (n = next_name(&folder, &b)) > 0;)
        if (next_name(&path, &a) != n || memcmp(a, b, n) != 0) return false;
    return !climbs(path);
}

const char *bpt_force_or_resume(bpt_train_options *o, const bpt_option_set *set) {
    const bpt_option_source force = bpt_option_where(set, "force");
    const bpt_option_source resume = bpt_option_where(set, "resume");
    if (!o->force || !o->resume || !o->output || force == resume) return NULL;
    if (!bpt_option_uses_any(o, "resume")) return NULL; /* each is judged for itself */
    if (strcmp(o->resume, "auto") != 0 && !is_named_within(o->resume, o->output)) return NULL;
    if (force == BPT_SOURCE_COMMAND_LINE) {
        o->resume = NULL;
        return "resume";
    }
    o->force = false;
    return "force";
}
