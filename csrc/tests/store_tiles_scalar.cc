#include "tests/store_tiles.h"
