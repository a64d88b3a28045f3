/* Limits of control groups, read from trees of files as systems and containers have them.
 *
 * ctest: cpu TIMEOUT=20 */
#include "base/cgroup.h"
#include "base/memory.h"

#include <sys/stat.h>

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static char root[] = "/tmp/bpt-cgroup-XXXXXX";

static void command(const char *format, ...) {
    char line[2 * PATH_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert_int_equal(system(line), 0);
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(root)) return -1;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    command("rm -rf %s", root);
    return 0;
}

/* A file of the tree, with the folders that it is in; between tests nothing stays. */
static void put(const char *path, const char *text) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/%s", root, path);
    command("mkdir -p \"$(dirname %s)\"", name);
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void clear(void) {
    command("rm -rf %s/*", root);
}

static void check(size_t memory, double processors) {
    const bpt_cgroup_limits l = bpt_cgroup_read_below(root);
    assert_true(l.memory_bytes == memory);
    assert_true(l.processors == processors);
}

static const char unified[] =
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

static void test_nothing_to_read(void **state) {
    (void)state;
    clear();
    check(SIZE_MAX, HUGE_VAL);
    put("proc/self/mountinfo", "no such line\n - \n30 22 0:26 / /sys/fs/cgroup rw - cgroup2\n");
    put("proc/self/cgroup", "nothing\n0\n0:\n0::\n::::\n");
    check(SIZE_MAX, HUGE_VAL);
}

static void test_version_2(void **state) {
    (void)state;
    clear();
    put("proc/self/mountinfo", unified);
    put("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    check(SIZE_MAX, HUGE_VAL); /* no files */
    put("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    put("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
    check(SIZE_MAX, HUGE_VAL);
    put("sys/fs/cgroup/slurm/job_7/memory.max", "1073741824\n");
    put("sys/fs/cgroup/slurm/job_7/cpu.max", "250000 100000\n");
    check(1024 * MIB, 2.5);
    put("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "536870912\n");
    put("sys/fs/cgroup/slurm/cpu.max", "50000 100000\n");
    check(512 * MIB, 0.5);
}

/* In a group namespace the own group is the top of what is mounted. */
static void test_container_of_version_2(void **state) {
    (void)state;
    clear();
    put("proc/self/mountinfo", unified);
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "268435456\n");
    put("sys/fs/cgroup/cpu.max", "400000 100000\n");
    check(256 * MIB, 4.0);
}

static const char version_1[] =
    "31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 %s /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 %s /sys/fs/cgroup/cpuset rw,nosuid - cgroup cgroup rw,cpuset\n"
    "34 31 0:31 %s /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
    "35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

static void put_version_1(const char *top, const char *group) {
    char text[2048];
    snprintf(text, sizeof text, version_1, top, top, top);
    put("proc/self/mountinfo", text);
    snprintf(text, sizeof text,
             "9:cpuset:%s\n5:memory:%s\n3:cpu,cpuacct:%s\n1:name=systemd:/init\n0::/init\n", group,
             group, group);
    put("proc/self/cgroup", text);
}

static void test_version_1(void **state) {
    (void)state;
    clear();
    put_version_1("/", "/batch/job");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/cpu,cpuacct/batch/job/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/batch/job/cpu.cfs_period_us", "100000\n");
    check(9223372036854771712U, HUGE_VAL);
    put("sys/fs/cgroup/memory/batch/job/memory.limit_in_bytes", "104857600\n");
    put("sys/fs/cgroup/cpu,cpuacct/batch/job/cpu.cfs_quota_us", "9000\n");
    put("sys/fs/cgroup/cpu,cpuacct/batch/job/cpu.cfs_period_us", "10000\n");
    check(100 * MIB, 0.9);
}

/* The group's name is that of the host, what is mounted begins with it. */
static void test_container_of_version_1(void **state) {
    (void)state;
    clear();
    put_version_1("/docker/4711", "/docker/4711");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    check(200 * MIB, 3.0);
    put_version_1("/docker/4711", "/docker/4711/inner");
    put("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "104857600\n");
    check(100 * MIB, 3.0);
    put_version_1("/", "/docker/4711"); /* and there is no such folder */
    check(200 * MIB, 3.0);
}

static void test_names_that_are_no_paths(void **state) {
    char group[3 * PATH_MAX], text[sizeof group + 16];
    (void)state;
    clear();
    for (size_t i = 0; i < sizeof group; i++) group[i] = i % 100 ? 'x' : '/';
    group[sizeof group - 1] = '\0';
    put("proc/self/mountinfo", unified);
    snprintf(text, sizeof text, "0::%s\n", group);
    put("proc/self/cgroup", text);
    put("sys/fs/cgroup/memory.max", "268435456\n");
    check(SIZE_MAX, HUGE_VAL);
    put("proc/self/cgroup", "0::/../..\n"); /* above what is mounted */
    check(256 * MIB, HUGE_VAL);
}

/* The host's groups are mounted besides, as for monitoring: the container's own counts. */
static void test_several_mounts(void **state) {
    static const char own[] = "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    static const char host[] = "31 22 0:26 /../../.. /host/sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
    static const char other[] = "32 22 0:26 /machine.slice/c1 /mnt/other rw - cgroup2 cgroup2 rw\n";
    char text[1024];
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        clear();
        snprintf(text, sizeof text, "%s%s%s", turn ? other : own, host, turn ? own : other);
        put("proc/self/mountinfo", text);
        put("proc/self/cgroup", "0::/\n");
        put("sys/fs/cgroup/memory.max", "268435456\n");
        put("sys/fs/cgroup/cpu.max", "100000 100000\n");
        put("mnt/other/memory.max", "67108864\n");
        check(256 * MIB, 1.0);
        put("proc/self/cgroup", "0::/user.slice\n");
        put("sys/fs/cgroup/user.slice/memory.max", "134217728\n");
        check(128 * MIB, 1.0);
        put("proc/self/cgroup", "0::/machine.slice/c1/job\n"); /* the nearest shows it best */
        put("mnt/other/job/memory.max", "33554432\n");
        check(32 * MIB, HUGE_VAL);
    }
}

/* systemd has backslashes in its names. */
static void test_escaped_names(void **state) {
    (void)state;
    clear();
    put("proc/self/mountinfo",
        "30 22 0:26 /system.slice/my\\134x2dd.service /a\\040b rw - cgroup2 cgroup2 rw\n");
    put("proc/self/cgroup", "0::/system.slice/my\\x2dd.service/job\n");
    put("spaced/job/memory.max", "1000000\n");
    command("mv %s/spaced '%s/a b'", root, root);
    check(1000000, HUGE_VAL);
}

static void test_this_machine(void **state) {
    (void)state;
    const bpt_cgroup_limits l = bpt_cgroup_read();
    assert_true(l.memory_bytes > 0 && l.processors > 0.0);
    assert_true(bpt_memory_of_machine() <= l.memory_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_to_read),
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_container_of_version_2),
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_container_of_version_1),
        cmocka_unit_test(test_names_that_are_no_paths),
        cmocka_unit_test(test_several_mounts),
        cmocka_unit_test(test_escaped_names),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
