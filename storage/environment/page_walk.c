#include "storage/environment/page_walk.h"

#include "base/file.h"
#include "base/memory.h"

#include <sys/mman.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* ---- LMDB's file format (mdb.c of 0.9, 64 bit, native byte order) ---- */

enum {
    MAGIC = 0xBEEFC0DE,
    DATA_VERSION = 1,
    PAGE_BRANCH = 0x01,
    PAGE_LEAF = 0x02,
    PAGE_OVERFLOW = 0x04,
    PAGE_META = 0x08,
    NODE_BIG = 0x01,      /* data is the number of the first page of a large value */
    NODE_DATABASE = 0x02, /* data is a tree */
    FREE_FLAGS = 0x08,    /* integer keys */
    MAX_DEPTH = 32,
};
#define NO_PAGE UINT64_MAX

typedef struct page_header {
    uint64_t number;
    uint16_t pad, flags;
    uint16_t lower, upper; /* of a large value: together the number of its pages */
} page_header;

typedef struct tree {
    uint32_t pad; /* page size in the tree of free pages, else 0 */
    uint16_t flags, depth;
    uint64_t n_branches, n_leaves, n_overflow, n_entries, root;
} tree;

typedef struct meta {
    uint32_t magic, version;
    uint64_t address, map_bytes;
    tree free, main;
    uint64_t last_page, txn_id;
} meta;

typedef struct node_header {
    uint16_t low, high, flags, key_bytes;
} node_header;

_Static_assert(sizeof(page_header) == 16 && sizeof(tree) == 48 && sizeof(meta) == 136 &&
                   sizeof(node_header) == 8,
               "as on disk");

/* ---- the heads ---- */

static bpt_status damaged(const char *file, uint64_t page, const char *what) {
    return bpt_fail(BPT_ECORRUPT, "%s is damaged: page %llu: %s", file, (unsigned long long)page,
                    what);
}

static bpt_status read_meta(int fd, const char *file, uint64_t page, size_t page_bytes,
                            page_header *header, meta *m) {
    uint8_t bytes[sizeof *header + sizeof *m];
    const ssize_t n = pread(fd, bytes, sizeof bytes, (off_t)(page * page_bytes));
    if (n < 0) return bpt_fail_errno(errno, "read", file);
    if ((size_t)n < sizeof bytes) return damaged(file, page, "the file ends there");
    memcpy(header, bytes, sizeof *header);
    memcpy(m, bytes + sizeof *header, sizeof *m);
    return BPT_OK;
}

/* Programs that make LMDBs for themselves choose their map freely: Caffe's is of a terabyte. */
static bpt_status strange_map(const char *file, const meta *m, const bpt__page_rules *rules) {
    const bpt_status status =
        bpt_fail(BPT_ECORRUPT, "%s is damaged, or of another program: a map of %llu bytes", file,
                 (unsigned long long)m->map_bytes);
    if (rules->records_hint) bpt_hint("%s; else restore it from a copy", rules->records_hint);
    return status;
}

/* What must be true of either head at any time, also while a writer is at work. */
static bpt_status check_head(const char *file, uint64_t file_bytes, uint64_t page,
                             const page_header *header, const meta *m, size_t page_bytes,
                             const bpt__page_rules *rules) {
    if (header->number != page || header->flags != PAGE_META || header->pad != 0)
        return damaged(file, page, "not a head page");
    if (m->magic != MAGIC || m->version != DATA_VERSION) return damaged(file, page, "wrong magic");
    if (m->free.pad != page_bytes) return damaged(file, page, "wrong page size");
    if (m->free.flags != (FREE_FLAGS | rules->flags) || m->main.flags != 0 || m->main.pad != 0 ||
        m->address != 0)
        return damaged(file, page, "unknown flags");
    /* LMDB maps that much at once. Writers never ask for more than twice this, and leave unwritten
     * only what one transaction has both used and freed. */
    const uint64_t max_pages = (file_bytes + rules->spare_bytes) / page_bytes;
    const bool odd_map = m->map_bytes % page_bytes != 0 && !rules->any_map;
    if (odd_map || m->map_bytes / page_bytes > 2 * max_pages) return strange_map(file, m, rules);
    if (m->last_page < 1 || m->last_page >= m->map_bytes / page_bytes || m->last_page > max_pages)
        return damaged(file, page, "sizes that cannot be");
    if (m->txn_id != 0 && (m->txn_id & 1) != page) return damaged(file, page, "wrong transaction");
    return BPT_OK;
}

static bpt_status check_heads(int fd, const char *file, uint64_t bytes,
                              const bpt__page_rules *rules, size_t *page_bytes) {
    page_header header = {0};
    meta m[2] = {{0}};
    BPT_TRY(read_meta(fd, file, 0, 0, &header, &m[0]));
    if (m[0].magic != MAGIC) return bpt_fail(BPT_EDATA, "%s is not an LMDB file", file);
    if (m[0].version != DATA_VERSION)
        return bpt_fail(BPT_EDATA, "%s has LMDB format %u, this program knows %d", file,
                        m[0].version, DATA_VERSION);
    const size_t size = m[0].free.pad;
    if (size < 512 || size > 65536 || (size & (size - 1)) != 0)
        return damaged(file, 0, "impossible page size");
    BPT_TRY(check_head(file, bytes, 0, &header, &m[0], size, rules));
    BPT_TRY(read_meta(fd, file, 1, size, &header, &m[1]));
    BPT_TRY(check_head(file, bytes, 1, &header, &m[1], size, rules));
    *page_bytes = size;
    return BPT_OK;
}

bpt_status bpt__page_check_heads(const char *file, const bpt__page_rules *rules) {
    int fd;
    uint64_t bytes;
    size_t page_bytes;
    BPT_TRY(bpt_file_open(file, &fd, &bytes));
    const bpt_status status = bytes == 0 ? bpt_fail(BPT_ENOENT, "%s is empty", file)
                                         : check_heads(fd, file, bytes, rules, &page_bytes);
    close(fd);
    return status;
}

bpt_status bpt__page_is_stump(const char *file, bool *is) {
    int fd;
    uint64_t bytes;
    page_header header = {0};
    meta m = {0};
    bpt_status status = BPT_OK;
    BPT_TRY(bpt_file_open(file, &fd, &bytes));
    *is = bytes == 0;
    if (bytes >= sizeof header + sizeof m) {
        status = read_meta(fd, file, 0, 0, &header, &m);
        *is = status == BPT_OK && header.flags == PAGE_META && m.magic == MAGIC && m.txn_id == 0 &&
              m.last_page == 1 && m.free.root == NO_PAGE && m.main.root == NO_PAGE &&
              bytes < 2 * (uint64_t)m.free.pad;
    }
    close(fd);
    return status;
}

/* ---- the trees ---- */

typedef struct key {
    const uint8_t *bytes;
    size_t size;
} key;

typedef struct walk {
    const char *file;
    const uint8_t *map;
    size_t page_bytes;
    uint64_t n_pages; /* in the file */
    uint64_t *seen;   /* one bit a page, shape [n_pages / 64 + 1] */
    uint64_t last_page;
    bool deep;
    const bpt__page_rules *rules;
} walk;

/* State of one tree while it is walked in key order. */
typedef struct tree_walk {
    walk *w;
    const tree *t;
    bool integer_keys;
    key last;      /* the key before */
    bool equal_ok; /* the next key may equal it: it was a separator */
    uint64_t n_branches, n_leaves, n_overflow, n_entries;
} tree_walk;

static bpt_status walk_tree(walk *w, const tree *t, bool is_free, bool is_main);

static bpt_status mark(walk *w, uint64_t page, uint64_t n) {
    if (page < 2 || page > w->last_page || n > w->n_pages || page > w->n_pages - n ||
        page + n - 1 > w->last_page) /* LMDB's map may end there */
        return damaged(w->file, page, "referred to, but outside of the file");
    for (uint64_t p = page; p < page + n; p++) {
        const uint64_t bit = (uint64_t)1 << (p % 64);
        if (w->seen[p / 64] & bit) return damaged(w->file, p, "used twice");
        w->seen[p / 64] |= bit;
    }
    return BPT_OK;
}

static int compare(const tree_walk *tw, key a, key b) {
    if (tw->integer_keys) {
        uint64_t x, y;
        memcpy(&x, a.bytes, sizeof x);
        memcpy(&y, b.bytes, sizeof y);
        return (x > y) - (x < y);
    }
    const int order = memcmp(a.bytes, b.bytes, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static bpt_status check_order(tree_walk *tw, uint64_t page, key k, bool is_separator) {
    if (tw->integer_keys && k.size != sizeof(uint64_t))
        return damaged(tw->w->file, page, "a key of wrong size");
    if (tw->last.bytes) {
        const int order = compare(tw, tw->last, k);
        if (order > 0 || (order == 0 && !tw->equal_ok))
            return damaged(tw->w->file, page, "keys out of order");
    }
    tw->last = k;
    tw->equal_ok = is_separator;
    return BPT_OK;
}

static bpt_status check_large_value(tree_walk *tw, uint64_t page, uint64_t n) {
    walk *w = tw->w;
    BPT_TRY(mark(w, page, n));
    tw->n_overflow += n;
    if (!w->deep) return BPT_OK;
    page_header h;
    memcpy(&h, w->map + page * w->page_bytes, sizeof h);
    const uint32_t pages = (uint32_t)h.lower | (uint32_t)h.upper << 16;
    if (h.number != page || h.flags != PAGE_OVERFLOW || h.pad != 0 || pages != n)
        return damaged(w->file, page, "wrong header of a large value");
    return BPT_OK;
}

/* The list of pages that one transaction freed: a count, then page numbers, largest first. */
static bpt_status check_free_list(walk *w, uint64_t page, const uint8_t *data, size_t size) {
    uint64_t n, before = NO_PAGE;
    if (size < sizeof n) return damaged(w->file, page, "a list of free pages is cut");
    memcpy(&n, data, sizeof n);
    if (n > (size - sizeof n) / sizeof n)
        return damaged(w->file, page, "a list of free pages is cut");
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t p;
        memcpy(&p, data + i * sizeof p, sizeof p);
        if (p < 2 || p > w->last_page || p >= before)
            return damaged(w->file, page, "a free page that cannot be");
        if (p < w->n_pages && (w->seen[p / 64] >> (p % 64) & 1))
            return damaged(w->file, p, "used and free");
        before = p;
    }
    return BPT_OK;
}

/* Whole, and yet nothing that may be read here. */
static bpt_status another_program(const walk *w) {
    const bpt_status status =
        bpt_fail(BPT_EDATA,
                 "%s is an LMDB of another program: its records are in no named database", w->file);
    if (w->rules->records_hint) bpt_hint("%s", w->rules->records_hint);
    return status;
}

static bpt_status check_leaf_node(tree_walk *tw, uint64_t page, const uint8_t *at, size_t room,
                                  bool is_main) {
    walk *w = tw->w;
    node_header node;
    memcpy(&node, at, sizeof node);
    const size_t size = (size_t)node.low | (size_t)node.high << 16;
    const uint8_t *data = at + sizeof node + node.key_bytes;
    const bool big = node.flags == NODE_BIG;
    const size_t inside = big ? sizeof(uint64_t) : size;
    if (node.key_bytes == 0 || sizeof node + node.key_bytes + inside > room)
        return damaged(w->file, page, "an entry reaches outside of the page");
    BPT_TRY(check_order(tw, page, (key){at + sizeof node, node.key_bytes}, false));
    if (is_main) {
        tree child;
        /* Of the size of a database's it is one whose flags are damaged. */
        if (size != sizeof child && (node.flags == 0 || big)) return another_program(w);
        if (node.flags != NODE_DATABASE || size != sizeof child)
            return damaged(w->file, page, "an entry that is no database");
        memcpy(&child, data, sizeof child);
        return walk_tree(w, &child, false, false);
    }
    if (!big && node.flags != 0) return damaged(w->file, page, "an entry of unknown kind");
    if (big) {
        uint64_t first;
        memcpy(&first, data, sizeof first);
        const uint64_t n = (sizeof(page_header) - 1 + size) / w->page_bytes + 1;
        BPT_TRY(check_large_value(tw, first, n));
        data = w->map + first * w->page_bytes + sizeof(page_header);
    }
    return tw->integer_keys && w->deep ? check_free_list(w, page, data, size) : BPT_OK;
}

/* Asks for the heads of a leaf's large values, which are far from each other, all at once: each by
 * itself would wait for the disk. A hint: what cannot be is left to the check. */
static void announce_large_values(const walk *w, const uint8_t *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t offset;
        node_header node;
        uint64_t page;
        memcpy(&offset, at + sizeof(page_header) + 2 * i, sizeof offset);
        if (offset + sizeof node > w->page_bytes) continue;
        memcpy(&node, at + offset, sizeof node);
        const size_t data = offset + sizeof node + node.key_bytes;
        if (node.flags != NODE_BIG || data + sizeof page > w->page_bytes) continue;
        memcpy(&page, at + data, sizeof page);
        if (page < w->n_pages)
            (void)madvise((uint8_t *)(uintptr_t)w->map + page * w->page_bytes, w->page_bytes,
                          MADV_WILLNEED);
    }
}

static bpt_status walk_page(tree_walk *tw, uint64_t page, unsigned depth, bool is_main) {
    walk *w = tw->w;
    BPT_TRY(mark(w, page, 1));
    const uint8_t *at = w->map + page * w->page_bytes;
    page_header h;
    memcpy(&h, at, sizeof h);
    const bool leaf = depth == tw->t->depth;
    if (h.number != page || h.flags != (leaf ? PAGE_LEAF : PAGE_BRANCH))
        return damaged(w->file, page, "wrong header");
    if (h.lower < sizeof h || h.lower % 2 || h.lower > h.upper || h.upper > w->page_bytes)
        return damaged(w->file, page, "wrong bounds");
    const size_t n = (h.lower - sizeof h) / 2;
    if (n < (leaf ? 1 : 2)) return damaged(w->file, page, "too few entries");
    *(leaf ? &tw->n_leaves : &tw->n_branches) += 1;
    if (leaf && w->deep) announce_large_values(w, at, n);
    for (size_t i = 0; i < n; i++) {
        uint16_t offset;
        memcpy(&offset, at + sizeof h + 2 * i, sizeof offset);
        if (offset < h.upper || offset % 2 || offset + sizeof(node_header) > w->page_bytes)
            return damaged(w->file, page, "an entry lies outside of the page");
        const size_t room = w->page_bytes - offset;
        if (leaf) {
            tw->n_entries++;
            BPT_TRY(check_leaf_node(tw, page, at + offset, room, is_main));
            continue;
        }
        node_header node;
        memcpy(&node, at + offset, sizeof node);
        if (sizeof node + node.key_bytes > room || (i > 0 && node.key_bytes == 0))
            return damaged(w->file, page, "a key reaches outside of the page");
        /* The first key of a branch page stands for "less than all" and is not read. */
        if (i > 0)
            BPT_TRY(check_order(tw, page, (key){at + offset + sizeof node, node.key_bytes}, true));
        const uint64_t child =
            (uint64_t)node.low | (uint64_t)node.high << 16 | (uint64_t)node.flags << 32;
        BPT_TRY(walk_page(tw, child, depth + 1, is_main));
    }
    return BPT_OK;
}

static bpt_status walk_tree(walk *w, const tree *t, bool is_free, bool is_main) {
    tree_walk tw = {.w = w, .t = t, .integer_keys = is_free};
    if (!is_free && (t->pad != 0 || t->flags != 0))
        return damaged(w->file, t->root, "a database with unknown flags");
    if (t->root == NO_PAGE) {
        if (t->depth == 0 && t->n_entries == 0) return BPT_OK;
        return damaged(w->file, t->root, "an empty database with entries");
    }
    if (t->depth == 0 || t->depth >= MAX_DEPTH) return damaged(w->file, t->root, "wrong depth");
    BPT_TRY(walk_page(&tw, t->root, 1, is_main));
    if (tw.n_branches != t->n_branches || tw.n_leaves != t->n_leaves ||
        tw.n_overflow != t->n_overflow || tw.n_entries != t->n_entries)
        return damaged(w->file, t->root, "a database with wrong counts");
    return BPT_OK;
}

/* LMDB leaves the rest of a head page zero. */
static bpt_status check_head_tail(const walk *w, uint64_t page) {
    const uint8_t *at = w->map + page * w->page_bytes;
    for (size_t i = sizeof(page_header) + sizeof(meta); i < w->page_bytes; i++)
        if (at[i] != 0) return damaged(w->file, page, "bytes where there should be none");
    return BPT_OK;
}

static bpt_status walk_state(walk *w, uint64_t txn_id) {
    meta m[2];
    for (int i = 0; i < 2; i++)
        memcpy(&m[i], w->map + (size_t)i * w->page_bytes + sizeof(page_header), sizeof m[i]);
    const meta *mine = &m[txn_id & 1], *other = &m[~txn_id & 1];
    if (mine->txn_id != txn_id || (other->txn_id > txn_id && other->txn_id - txn_id > 1))
        return bpt_fail(BPT_ECANCELED, "%s: its state %llu was replaced while it was read", w->file,
                        (unsigned long long)txn_id);
    if (other->txn_id + 1 < txn_id) return damaged(w->file, ~txn_id & 1, "wrong transaction");
    w->last_page = mine->last_page;
    BPT_TRY(walk_tree(w, &mine->main, false, !w->rules->records_in_root));
    BPT_TRY(walk_tree(w, &mine->free, true, false));
    if (!w->deep) return BPT_OK;
    BPT_TRY(check_head_tail(w, 0));
    return check_head_tail(w, 1);
}

bpt_status bpt__page_walk(const char *file, const bpt__page_rules *rules, uint64_t txn_id,
                          bool deep) {
    int fd;
    uint64_t bytes;
    BPT_TRY(bpt_file_open(file, &fd, &bytes));
    bpt_status status;
    walk w = {.file = file, .deep = deep, .rules = rules};
    void *map = MAP_FAILED;
    BPT_TRY_GOTO(status, check_heads(fd, file, bytes, rules, &w.page_bytes), done);
    w.n_pages = bytes / w.page_bytes;
    map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        status = bpt_fail_errno(errno, "map", file);
        goto done;
    }
    w.map = map;
    /* Single pages from all over the file: what the system would read beside each of them could be
     * all of the records. */
    (void)madvise(map, (size_t)bytes, MADV_RANDOM);
    BPT_TRY_GOTO(status, BPT_NEW("page marks", w.n_pages / 64 + 1, &w.seen), done);
    status = walk_state(&w, txn_id);
done:
    bpt_free(w.seen);
    if (map != MAP_FAILED) munmap(map, (size_t)bytes);
    close(fd);
    return status;
}
