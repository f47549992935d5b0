// Prints what first.c is answered: twice each, as the loader's entries may be found at the first call.
#include <stdio.h>

int who(void);
int cuOnlyHere(void);
int find_aside(void);
int needed(void);

int main(void) {
  for (int i = 0; i < 2; ++i) printf("%d %d %d\n", who(), cuOnlyHere(), find_aside());
  return needed();
}
