// An ordinary program for loaders of every kind: looks symbols up, opens and closes, has a thread and a
// child.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void* nothing(void* argument) { return argument; }

int main(void) {
  void* self = dlopen(NULL, RTLD_NOW);
  dlsym(RTLD_DEFAULT, "cuInit");
  dlsym(RTLD_DEFAULT, "dlopen");
  if (self != NULL) dlclose(self);
  pthread_t thread;
  if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) return 2;
  puts("alive");
  return 5;
}
