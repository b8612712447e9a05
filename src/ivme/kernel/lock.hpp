// A lock for one writer or many readers, in turns: a waiting writer keeps new readers out, and when it is done, the
// readers that waited for it go before the next writer. So neither waits for more than one turn of the other side,
// where std::shared_mutex may let a writer wait for as long as readers come.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ivme {

class TurnLock {
public:
    using Clock = std::chrono::steady_clock;
    using Waits = std::array<uint64_t, 32>;

    void lock() { wait_alone(Clock::time_point::max()); }
    bool try_lock() {
        std::lock_guard guard(mutex_);
        return is_free() && take_alone();
    }
    bool try_lock_until(Clock::time_point deadline) { return wait_alone(deadline); }
    void unlock() {
        std::lock_guard guard(mutex_);
        writes_ = false;
        admitted_ = waiting_readers_;
        pass_on();
    }

    void lock_shared() { wait_shared(Clock::time_point::max()); }
    bool try_lock_shared() {
        std::lock_guard guard(mutex_);
        return is_open() && take_shared();
    }
    bool try_lock_shared_until(Clock::time_point deadline) { return wait_shared(deadline); }
    void unlock_shared() {
        std::lock_guard guard(mutex_);
        if (!--readers_) pass_on();
    }

    // How often it was taken at once (the first number), and after waiting for less than 1, 2, 4, ... microseconds.
    Waits waits() const {
        std::lock_guard guard(mutex_);
        return waits_;
    }

private:
    bool is_free() const { return !writes_ && !readers_ && !admitted_; }
    bool is_open() const { return !writes_ && !waiting_writers_ && !admitted_; }

    bool take_alone() {
        ++waits_[0];
        return writes_ = true;
    }
    bool take_shared() {
        ++waits_[0];
        return ++readers_;
    }

    bool wait_alone(Clock::time_point deadline) {
        std::unique_lock guard(mutex_);
        if (is_free()) return take_alone();
        Clock::time_point start = Clock::now();
        ++waiting_writers_;
        bool taken = wait(writers_, guard, deadline, [&] { return is_free(); });
        --waiting_writers_;
        if (!taken) {
            pass_on();  // it kept readers out
            return false;
        }
        note(start);
        return writes_ = true;
    }

    bool wait_shared(Clock::time_point deadline) {
        std::unique_lock guard(mutex_);
        if (is_open()) return take_shared();
        Clock::time_point start = Clock::now();
        ++waiting_readers_;
        bool taken = wait(arrivals_, guard, deadline, [&] { return !writes_ && (admitted_ > 0 || !waiting_writers_); });
        --waiting_readers_;
        if (taken && admitted_) --admitted_;
        if (!taken) {
            if (admitted_ > waiting_readers_) admitted_ = waiting_readers_;
            pass_on();
            return false;
        }
        note(start);
        return ++readers_;
    }

    template <class Ready>
    static bool wait(std::condition_variable& signal, std::unique_lock<std::mutex>& guard, Clock::time_point deadline,
                     Ready ready) {
        if (deadline != Clock::time_point::max()) return signal.wait_until(guard, deadline, ready);
        signal.wait(guard, ready);
        return true;
    }

    void pass_on() {
        if (waiting_writers_ && is_free()) {
            writers_.notify_one();
        } else if (waiting_readers_) {
            arrivals_.notify_all();
        }
    }

    void note(Clock::time_point start) {
        auto waited = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
        size_t place = 1 + static_cast<size_t>(std::bit_width(static_cast<uint64_t>(waited)));
        ++waits_[std::min(place, waits_.size() - 1)];
    }

    mutable std::mutex mutex_;
    std::condition_variable writers_, arrivals_;
    unsigned readers_ = 0;
    unsigned waiting_readers_ = 0, waiting_writers_ = 0;
    unsigned admitted_ = 0;  // waiting readers that go before the next writer
    bool writes_ = false;
    Waits waits_{};
};

}  // namespace ivme
