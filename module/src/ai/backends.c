#include "ai/backends.h"

#include <strings.h>

#include "ai/ai_state.h"

/* 0: a backend that INFO has no field for. */
static unsigned bit_of(const char *name) {
    static const char *const names[] = {"TF", "TFLITE", "TORCH", "ONNX"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0) return 1u << i;
    return 0;
}

void backend_loaded(const char *name) { ai.backends |= bit_of(name); }

bool backend_is_loaded(const char *name) { return (ai.backends & bit_of(name)) != 0; }
