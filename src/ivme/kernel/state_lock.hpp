// The lock of a database, which knows what is under way.
//
// An asynchronous exception (Ctrl-C) may end Python code between any two instructions, but not a native call. So the
// lock is taken and let go by native calls, which first end whatever such an exception left half done.
#pragma once

#include "bound_expressions.hpp"

namespace ivme {

// A thread's share in the locks that it has for reading: a few at most.
struct Share {
    const void* lock;
    size_t depth;
    bool suspended;  // the thread has it alone for now
};
inline thread_local std::vector<Share> shares;

// The lock of a database: a thread has it alone, or shares it with other readers, and may take it again. `pending` is
// the change that is under way: the thread that takes the lock first, or lets go of it last, calls its `settle` if it
// is still there. A limit of the thread's memory ends with it.
//
// A thread that reads and then wants the lock alone (a signal handler that writes, say) gives up its share meanwhile,
// or two of them would wait for each other; what it reads further may then have changed.
class StateLock {
public:
    StateLock() = default;
    StateLock(const StateLock&) = delete;
    StateLock& operator=(const StateLock&) = delete;
    ~StateLock() = default;

    bool acquire(bool blocking, double timeout) {
        Time deadline = blocking ? deadline_after(timeout) : Time::min();
        if (is_mine()) {
            ++depth_;
            return true;
        }
        if (!give_up_share(deadline)) return false;
        owner_ = std::this_thread::get_id();
        depth_ = 1;
        if (!pending.is_none()) settle_or_let_go();
        return true;
    }
    void enter() { acquire(true, -1); }

    void release() {
        if (!is_mine()) throw std::runtime_error("the thread does not have the lock");
        if (depth_ == 1 && !pending.is_none()) settle_or_let_go();
        if (depth_ == 1) return let_go();
        --depth_;
    }

    bool acquire_shared(bool blocking, double timeout) {
        if (is_mine()) return acquire(true, -1);
        if (Share* share = my_share()) {
            ++share->depth;
            return true;
        }
        Time deadline = blocking ? deadline_after(timeout) : Time::min();
        shares.reserve(shares.size() + 1);
        while (wait(deadline, true)) {
            if (pending.is_none()) {
                shares.push_back({this, 1, false});
                return true;
            }
            lock_.unlock_shared();
            if (!acquire(blocking, timeout)) return false;
            release();
        }
        return false;
    }
    void enter_shared() { acquire_shared(true, -1); }

    void release_shared() {
        if (is_mine()) return release();
        Share* share = my_share();
        if (!share) throw std::runtime_error("the thread does not have the lock");
        if (--share->depth) return;
        *share = shares.back();
        shares.pop_back();
        lock_.unlock_shared();
    }

    TurnLock::Waits waits() const { return lock_.waits(); }

    // Whether a thread has it alone, perhaps this one: then a change may be under way.
    bool is_taken() const { return owner_.load() != std::thread::id(); }

    nb::object pending = nb::none();

private:
    using Clock = TurnLock::Clock;
    using Time = Clock::time_point;

    bool is_mine() const { return owner_ == std::this_thread::get_id(); }
    Share* my_share() const {
        for (Share& share : shares) {
            if (share.lock == this && !share.suspended) return &share;
        }
        return nullptr;
    }

    static Time deadline_after(double seconds) {
        if (seconds < 0) return Time::max();
        return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

    // Without the GIL, which comes back now and then to look for signals.
    bool wait(Time deadline, bool is_shared) {
        if (is_shared ? lock_.try_lock_shared() : lock_.try_lock()) return true;
        while (Clock::now() < deadline) {
            Time until = std::min(deadline, Clock::now() + std::chrono::milliseconds(50));
            bool taken;
            {
                nb::gil_scoped_release release;
                taken = is_shared ? lock_.try_lock_shared_until(until) : lock_.try_lock_until(until);
            }
            if (taken) return true;
            if (PyErr_CheckSignals()) throw nb::python_error();
        }
        return false;
    }

    // Takes the lock alone, in the place of the thread's share if it has one; without the lock, it has that again.
    bool give_up_share(Time deadline) {
        Share* share = my_share();
        if (!share) return wait(deadline, false);
        lock_.unlock_shared();
        share->suspended = true;
        bool taken = false;
        try {
            taken = wait(deadline, false);
        } catch (...) {
            take_shares_back();
            throw;
        }
        if (!taken) take_shares_back();
        return taken;
    }

    void let_go() {
        memory_room = -1;
        depth_ = 0;
        owner_ = std::thread::id();
        lock_.unlock();
        take_shares_back();
    }

    void take_shares_back() {
        for (Share& share : shares) {
            if (share.lock != this || !share.suspended) continue;
            share.suspended = false;
            if (lock_.try_lock_shared()) continue;
            nb::gil_scoped_release release;
            lock_.lock_shared();
        }
    }

    void settle_or_let_go() {
        try {
            nb::object settle = pending.attr("settle");
            settle();
        } catch (...) {
            let_go();
            throw;
        }
    }

    TurnLock lock_;
    std::atomic<std::thread::id> owner_ = std::thread::id();
    size_t depth_ = 0;
};

// The lock for reading, in a `with`.
struct SharedSide {
    StateLock& lock;
};

}  // namespace ivme
