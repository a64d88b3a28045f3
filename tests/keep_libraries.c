/* Linked into every program of a build with the address sanitizer: keeps Open MPI's plug-ins
 * loaded, or the leak sanitizer could not tell what they leave behind from what we do. */
int dlclose(void *library);
int dlclose(void *library) {
    (void)library;
    return 0;
}
