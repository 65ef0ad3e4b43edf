// oneCCL's static CPU library takes these symbols from the runtime of the compiler that built it.
#include <cstddef>
#include <cstring>

extern "C" {

void *_intel_fast_memcpy(void *to, const void *from, std::size_t bytes)
{
    return std::memcpy(to, from, bytes);
}

void *_intel_fast_memset(void *to, int value, std::size_t bytes)
{
    return std::memset(to, value, bytes);
}

// Hooks of a tracer, which is absent.
void *__itt_domain_create_ptr__3_0 = nullptr;
void *__itt_event_create_ptr__3_0 = nullptr;
void *__itt_event_end_ptr__3_0 = nullptr;
void *__itt_event_start_ptr__3_0 = nullptr;
void *__itt_metadata_add_ptr__3_0 = nullptr;
void *__itt_string_handle_create_ptr__3_0 = nullptr;
void *__itt_task_begin_ptr__3_0 = nullptr;
void *__itt_task_end_ptr__3_0 = nullptr;
void *__itt_thread_set_name_ptr__3_0 = nullptr;
}
