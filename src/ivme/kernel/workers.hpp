// Threads of the process that help with large batches: few, shared by all databases, and asleep between two batches.
//
// They never touch Python. A process that was forked has none of its parent's, and starts its own.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ivme {

// A batch calls for help several times, and to be woken takes longer than the pauses in between: so a thread looks for
// the next call, or for the end of one, for a moment before it sleeps.
// It keeps its core meanwhile: on a busy machine it would not get it back for milliseconds. If it looks longer, it lets
// others have it that want it.
inline constexpr auto MOMENT = std::chrono::microseconds(20);
template <class Holds>
void look_for(Holds holds, std::chrono::microseconds longest = MOMENT) {
    auto begun = std::chrono::steady_clock::now();
    while (!holds()) {
        auto looked = std::chrono::steady_clock::now() - begun;
        if (looked >= longest) return;
        if (looked >= MOMENT) std::this_thread::yield();
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
}

// Work that is begun beside its caller, who asks for its result later. It does not throw.
struct Task {
    std::function<void()> work;
    enum class State : uint8_t { made, posted, begun, done };
    std::atomic<State> state = State::made;
};

class Workers {
public:
    using Body = std::function<void(unsigned)>;

    static Workers& shared();

    // Gives a task to the next thread that has time; it goes before calls, which have a thread already.
    void post(Task& task);
    // Returns when a task is done, which this thread does if no other has begun it.
    void join(Task& task);
    // Between these two no task begins, and those that had begun are done: a process may be forked then. Who calls it
    // has no lock, nor the GIL, which a task, or somebody for whom it waits, may want.
    void hold_tasks();
    void let_tasks_go();
    // The same for a fork that nobody was told of before, which waits for tasks whatever it holds.
    void pause();
    void go_on() { mutex_.unlock(); }

    // Calls body(0) on this thread and, on others that have time, body(1) to body(threads - 1). Returns when all calls
    // that began have returned; those that did not begin are not made. The body does not throw.
    void run(unsigned threads, const Body& body);

private:
    struct Call {
        const Body* body;
        unsigned next, end;
        std::atomic<unsigned> inside = 0;
    };

    Workers() = default;
    void start(unsigned threads) noexcept;
    void work();
    void count_waiting() { waiting_ = calls_.size() + (holders_ ? 0 : tasks_.size()); }
    void help(std::unique_lock<std::mutex>& lock);
    void do_task(std::unique_lock<std::mutex>& lock);

    static constexpr unsigned MOST = 256;
    std::mutex mutex_;
    std::condition_variable called_, left_;
    std::deque<Call*> calls_;
    std::deque<Task*> tasks_;
    unsigned tasks_begun_ = 0;
    unsigned holders_ = 0;             // of tasks
    std::atomic<size_t> waiting_ = 0;  // calls that others may join, and tasks
    unsigned started_ = 0;
};

// Does tasks that know nothing of each other on up to so many threads. If some fail, the first of them in order says
// why; others may not have been done then.
template <class Work>
void in_parallel(unsigned threads, size_t tasks, Work work) {
    if (threads < 2 || tasks < 2) {
        for (size_t task = 0; task < tasks; ++task) work(task);
        return;
    }
    std::atomic<size_t> next = 0, failed = tasks;
    std::mutex mutex;
    std::exception_ptr error;
    auto body = [&](unsigned) {
        for (size_t task = next++; task < std::min(tasks, failed.load()); task = next++) {
            try {
                work(task);
            } catch (...) {
                std::lock_guard guard(mutex);
                if (task >= failed) continue;
                failed = task;
                error = std::current_exception();
            }
        }
    };
    Workers::shared().run(static_cast<unsigned>(std::min<size_t>(threads, tasks)), body);
    if (error) std::rethrow_exception(error);
}

}  // namespace ivme
