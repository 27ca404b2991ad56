/* SPDX-License-Identifier: Apache-2.0
 * usage: run_example WORKFLOW INPUTS
 * Compiles a workflow, runs it, prints the answer; events go to stderr. Exits with 0 when it has run.
 */
#include <caisson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  char *text;
  if (file == NULL) return NULL;
  text = malloc(1 << 20);
  *size = text == NULL ? 0 : fread(text, 1, 1 << 20, file);
  fclose(file);
  return text;
}

static int is_ok(const char *answer) {
  return answer != NULL && strncmp(answer, "{\"ok\":true", 10) == 0;
}

static int show_event(void *user, const char *line, size_t size) {
  fprintf(stderr, "%.*s\n", (int)size, line);
  ++*(int *)user;
  return 0;
}

int main(int argc, char **argv) {
  size_t source_size = 0, inputs_size = 0;
  char *source, *inputs, *compiled, *made, *answer = NULL;
  const char *ir;
  caisson_engine *engine = NULL;
  int events = 0, ran;
  if (argc != 3 || caisson_api_version() != CAISSON_API_VERSION) return 2;
  source = read_file(argv[1], &source_size);
  inputs = read_file(argv[2], &inputs_size);
  compiled = caisson_compile(source, source_size, NULL);
  if (!is_ok(compiled)) {
    fprintf(stderr, "%s\n", compiled);
    return 1;
  }
  made = caisson_engine_create("{\"workers\":1}", &engine);
  if (is_ok(made)) {
    size_t ir_size;
    /* The canonical IR ends before the content id; a real program reads the JSON. */
    ir = strstr(compiled, "\"ir\":") + 5;
    ir_size = (size_t)(strstr(compiled, ",\"content_id\":") - ir);
    answer = caisson_run(engine, ir, ir_size, inputs, inputs_size, NULL, NULL, show_event, &events);
  }
  ran = is_ok(answer) && strstr(answer, "\"status\":\"succeeded\"") != NULL && events > 3;
  puts(answer != NULL ? answer : made);
  caisson_free(answer);
  caisson_free(made);
  caisson_free(compiled);
  caisson_engine_destroy(engine);
  free(source);
  free(inputs);
  return ran ? 0 : 1;
}
