/* Extensions. */
#ifndef PJRT_C_API_EXTENSIONS_H_
#define PJRT_C_API_EXTENSIONS_H_
#include "pjrt_c_api.h"
#endif
