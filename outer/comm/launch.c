#include "outer/comm/launch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* One kind of launcher; the first whose number of processes is there counts: whoever starts another
 * from within comes first. */
typedef struct {
    const char *name, *rank, *size, *on_host;
    bool connects;
} kind;

/* SLURM_NTASKS is no sign: a batch script has it, too, and starts programs of one process. */
static const kind kinds[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {"a launcher by PMI (MPICH's mpiexec, srun)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", true},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL, false},
};

static const char *const ranks_for_mpi[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

/* @return whether the variable is a whole number, from @p least on */
static bool read_number(const char *(*get)(const char *), const char *name, uint32_t least,
                        uint32_t *number) {
    const char *text = name ? get(name) : NULL;
    if (!text || *text < '0' || *text > '9') return false;
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end || value < least || value > UINT32_MAX) return false;
    *number = (uint32_t)value;
    return true;
}

bpt_launch bpt_launch_read(const char *(*get)(const char *name)) {
    bpt_launch launch = {.size = 1, .on_host = 1};
    for (size_t i = 0; i < sizeof ranks_for_mpi / sizeof *ranks_for_mpi; i++) {
        if (!get(ranks_for_mpi[i])) continue;
        launch.connects = true;
        (void)read_number(get, ranks_for_mpi[i], 0, &launch.rank);
        break;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        if (!read_number(get, k->size, 1, &launch.size)) continue;
        launch.launcher = k->name;
        launch.connects = launch.connects || k->connects;
        launch.is_mpirun = k == &kinds[0];
        (void)read_number(get, k->rank, 0, &launch.rank);
        (void)read_number(get, k->on_host, 1, &launch.on_host);
        break;
    }
    return launch;
}

static const char *look_up(const char *name) {
    return getenv(name);
}

bpt_launch bpt_launch_here(void) {
    return bpt_launch_read(look_up);
}

bool bpt_launch_is_split(const bpt_launch *launch, uint32_t world) {
    return world == 1 && launch->size > 1;
}

bpt_status bpt_launch_check(const bpt_launch *launch, uint32_t world, const char *library) {
    if (!bpt_launch_is_split(launch, world)) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE,
        "%s started %u processes, and each is a job of its own: this program's MPI library "
        "(%s) does not know that launcher",
        launch->launcher, launch->size, library);
    bpt_hint(
        "start it with the mpirun of that library (`mpirun --version` says whose it is), or "
        "under Slurm with `srun --mpi=pmix`");
    return status;
}
