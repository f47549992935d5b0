// Stands for libtidepool.so where a test is about the command alone.
extern "C" int tidepool_harmless();
int tidepool_harmless() { return 0; }
