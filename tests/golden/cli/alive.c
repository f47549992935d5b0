// The least that a program can do, to be linked statically.
#include <stdio.h>

int main(void) {
  puts("alive");
  return 5;
}
