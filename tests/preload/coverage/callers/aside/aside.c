// In a folder that only first.c's RUNPATH names.
__attribute__((visibility("default"))) int aside(void);

int aside(void) { return 3; }
