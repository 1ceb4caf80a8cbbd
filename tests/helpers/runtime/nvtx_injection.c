/* What a profiler puts into a process by NVTX_INJECTION64_PATH, for tests: it records the ranges
 * that it gets. Only NVTX's own numbers are known here, none of its headers. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { kCallbacksTable = 1, kCore2 = 5, kPush = 4, kPop = 5, kCreateDomain = 12 };

typedef void (*function_t)(void);
typedef struct {
  size_t bytes;
  int (*functions_of)(int module, function_t ***table, unsigned *size);
} callbacks_t;
typedef struct {
  uint16_t version, bytes;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char *message;
} attributes_t;

static char lines[1 << 16];
static __thread int depth;

static void say(const char *text) { strncat(lines, text, sizeof lines - strlen(lines) - 1); }

static void *create_domain(const char *name) {
  static char domain[64];
  snprintf(domain, sizeof domain, "%s", name);
  return domain;
}

static int push(void *domain, const attributes_t *range) {
  char line[256];
  if (range->version != 3 || range->bytes != sizeof *range || range->message_type != 1) return -1;
  snprintf(line, sizeof line, "%s: %s", (const char *)domain, range->message);
  if (range->payload_type == 1) {
    snprintf(line + strlen(line), sizeof line - strlen(line), " of %llu bytes",
             (unsigned long long)range->payload);
  }
  say(line);
  say("\n");
  return depth++;
}

static int pop(void *domain) {
  (void)domain;
  return --depth;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t)) {
  const callbacks_t *callbacks = export_table(kCallbacksTable);
  function_t **table = NULL;
  unsigned size = 0;
  if (callbacks == NULL || callbacks->bytes < sizeof *callbacks) return 0;
  if (!callbacks->functions_of(kCore2, &table, &size) || size <= kCreateDomain) return 0;
  *table[kPush] = (function_t)push;
  *table[kPop] = (function_t)pop;
  *table[kCreateDomain] = (function_t)create_domain;
  return 1;
}

/* The ranges that have begun, a line each, and how many of this thread have not ended. */
const char *ranges_seen(void) { return lines; }
int ranges_open(void) { return depth; }
