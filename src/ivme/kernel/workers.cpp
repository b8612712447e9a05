#include "workers.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

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
    if (!known) pthread_atfork(nullptr, nullptr, [] { workers = nullptr; });
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
        waiting_ = calls_.size();
    }
    for (unsigned i = 1; i < threads; ++i) called_.notify_one();
    body(0);
    std::unique_lock lock(mutex_);
    std::erase(calls_, &call);
    waiting_ = calls_.size();
    if (call.inside) {
        lock.unlock();
        look_for([&] { return !call.inside; });
        lock.lock();
    }
    left_.wait(lock, [&] { return !call.inside; });
}

void Workers::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        called_.wait(lock, [&] { return !calls_.empty(); });
        Call& call = *calls_.front();
        unsigned number = call.next++;
        ++call.inside;
        if (call.next == call.end) calls_.pop_front();
        waiting_ = calls_.size();
        lock.unlock();
        (*call.body)(number);
        lock.lock();
        if (!--call.inside) left_.notify_all();
        lock.unlock();
        look_for([&] { return waiting_ > 0; });
        lock.lock();
    }
}

}  // namespace ivme
