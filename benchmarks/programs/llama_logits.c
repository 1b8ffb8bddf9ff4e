/* Next-token logits of llama.cpp, through its public interface: llama_logits MODEL THREADS CONTEXT.

   Reads windows from standard input, each a count and as many token ids (32-bit integers), and
   writes for every token of a window the logits of the next one (float32, in the order of the
   vocabulary) to standard output. Windows do not see each other. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "llama.h"

static void say_nothing(enum ggml_log_level level, const char *text, void *data) {
  (void)level, (void)text, (void)data;
}

static int answer(struct llama_context *context, const int32_t *tokens, int32_t count, size_t width) {
  struct llama_batch batch = llama_batch_init(count, 0, 1);
  llama_memory_clear(llama_get_memory(context), true);
  for (int32_t i = 0; i < count; i++) {
    batch.token[i] = tokens[i];
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  batch.n_tokens = count;
  int failed = llama_decode(context, batch);
  for (int32_t i = 0; i < count && !failed; i++)
    failed = fwrite(llama_get_logits_ith(context, i), sizeof(float), width, stdout) != width;
  llama_batch_free(batch);
  fflush(stdout);
  return failed;
}

int main(int argument_count, char **arguments) {
  if (argument_count != 4) return 2;
  const int threads = atoi(arguments[2]);
  const uint32_t length = (uint32_t)atoi(arguments[3]);
  llama_log_set(say_nothing, NULL);
  llama_backend_init();
  struct llama_model *model =
      llama_model_load_from_file(arguments[1], llama_model_default_params());
  if (!model) return 1;
  struct llama_context_params params = llama_context_default_params();
  params.n_ctx = length;
  params.n_batch = length;
  params.n_threads = threads;
  params.n_threads_batch = threads;
  struct llama_context *context = llama_init_from_model(model, params);
  if (!context) return 1;
  const size_t width = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(model));
  int32_t *tokens = malloc(length * sizeof *tokens);
  int32_t count;
  while (fread(&count, sizeof count, 1, stdin) == 1) {
    if (count < 1 || (uint32_t)count > length) return 2;
    if (fread(tokens, sizeof *tokens, (size_t)count, stdin) != (size_t)count) return 1;
    if (answer(context, tokens, count, width)) return 1;
  }
  return 0;
}
