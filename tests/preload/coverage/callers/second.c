// The next definitions after first.c's.
__attribute__((visibility("default"))) int who(void);
__attribute__((visibility("default"))) int cuOnlyHere(void);

// Called by the program, which is not linked to a library that it does not need.
__attribute__((visibility("default"))) int needed(void);

int needed(void) { return 0; }
int who(void) { return 1; }
int cuOnlyHere(void) { return 2; }
