#include "workers.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

#include "pages.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace ivme {

namespace {

std::atomic<Workers*> workers = nullptr;
std::mutex making;

}  // namespace

// They are never ended: at the end of the process they sleep.
Workers& Workers::shared() {
    if (Workers* there = workers.load()) return *there;
    std::lock_guard guard(making);
#ifndef _WIN32
    static bool known = false;
#ifdef IVME_PAGES
    // A fork asks those first who were registered last: tasks need pages until they are done.
    PagePool::shared();
#endif
    auto pause = [] {
        if (Workers* there = workers.load()) there->pause();
    };
    auto go_on = [] {
        if (Workers* there = workers.load()) there->go_on();
    };
    if (!known) pthread_atfork(pause, go_on, [] { workers = nullptr; });
    known = true;
#endif
    if (!workers) workers = new Workers();
    return *workers;
}

void Workers::start(unsigned threads) noexcept {
    try {
        for (; started_ < std::min(threads, MOST); ++started_) std::thread([this] { work(); }).detach();
    } catch (const std::system_error&) {
        return;  // then fewer help
    }
}

void Workers::run(unsigned threads, const Body& body) {
    Call call{&body, 1, threads};
    {
        std::lock_guard guard(mutex_);
        start(threads - 1);
        if (threads > 1) calls_.push_back(&call);
        count_waiting();
    }
    for (unsigned i = 1; i < threads; ++i) called_.notify_one();
    body(0);
    std::unique_lock lock(mutex_);
    std::erase(calls_, &call);
    count_waiting();
    if (call.inside) {
        lock.unlock();
        look_for([&] { return !call.inside; });
        lock.lock();
    }
    left_.wait(lock, [&] { return !call.inside; });
}

void Workers::post(Task& task) {
    {
        std::lock_guard guard(mutex_);
        start(1);
        task.state = Task::State::posted;
        tasks_.push_back(&task);
        count_waiting();
    }
    called_.notify_one();
}

void Workers::join(Task& task) {
    std::unique_lock lock(mutex_);
    if (task.state == Task::State::posted) {
        std::erase(tasks_, &task);
        count_waiting();
        lock.unlock();
        task.work();
        task.state = Task::State::done;
        return;
    }
    if (task.state != Task::State::begun) return;
    lock.unlock();
    look_for([&] { return task.state == Task::State::done; });
    lock.lock();
    left_.wait(lock, [&] { return task.state == Task::State::done; });
}

void Workers::hold_tasks() {
    std::unique_lock lock(mutex_);
    ++holders_;
    count_waiting();
    left_.wait(lock, [&] { return !tasks_begun_; });
}

void Workers::let_tasks_go() {
    {
        std::lock_guard guard(mutex_);
        --holders_;
        count_waiting();
    }
    called_.notify_all();
}

void Workers::pause() {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] { return !tasks_begun_; });
    lock.release();
}

// To be woken takes the caller of a stream of batches as long as a small batch, so a thread looks longer for the next
// task if the last one came soon.
void Workers::work() {
    constexpr auto SOON = std::chrono::microseconds(100);
    std::unique_lock lock(mutex_);
    auto since = std::chrono::steady_clock::now();
    for (;;) {
        called_.wait(lock, [&] { return waiting_ > 0; });
        bool is_task = !tasks_.empty() && !holders_;
        bool came_soon = is_task && std::chrono::steady_clock::now() - since < SOON;
        is_task ? do_task(lock) : help(lock);
        lock.unlock();
        since = std::chrono::steady_clock::now();
        look_for([&] { return waiting_ > 0; }, came_soon ? 2 * SOON : MOMENT);
        lock.lock();
    }
}

void Workers::help(std::unique_lock<std::mutex>& lock) {
    Call& call = *calls_.front();
    unsigned number = call.next++;
    ++call.inside;
    if (call.next == call.end) calls_.pop_front();
    count_waiting();
    lock.unlock();
    (*call.body)(number);
    lock.lock();
    if (!--call.inside) left_.notify_all();
}

void Workers::do_task(std::unique_lock<std::mutex>& lock) {
    Task& task = *tasks_.front();
    tasks_.pop_front();
    count_waiting();
    task.state = Task::State::begun;
    ++tasks_begun_;
    lock.unlock();
    task.work();
    lock.lock();
    --tasks_begun_;
    task.state = Task::State::done;  // it may be gone from here on
    left_.notify_all();
}

}  // namespace ivme
