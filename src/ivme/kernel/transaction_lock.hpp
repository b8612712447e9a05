// A lock for one writer or many readers, which stays with a thread for as long as its transaction is open.
#pragma once

#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

#include "lock.hpp"

namespace ivme {

class TransactionLock {
public:
    using Reading = std::shared_lock<TurnLock>;
    using Writing = std::unique_lock<TurnLock>;

    Reading reading() const { return wait<Reading>(); }
    Writing writing() const { return wait<Writing>(); }
    // Without waiting, or for so long; the lock may be empty.
    Reading try_reading(TurnLock::Clock::duration patience = {}) const { return attempt<Reading>(patience); }
    Writing try_writing(TurnLock::Clock::duration patience = {}) const { return attempt<Writing>(patience); }
    // For a cursor that has pinned its maps: what it reads is as it was, also while a transaction is open.
    Reading reading_pinned() const { return Reading(mutex_); }
    TurnLock::Waits waits() const { return mutex_.waits(); }

    // Also for a transaction of another thread, whose end an exception may have kept it from.
    Writing ending() const { return Writing(mutex_); }
    Writing try_ending(TurnLock::Clock::duration patience) const {
        return Writing(mutex_, TurnLock::Clock::now() + patience);
    }

    // All that follows is done by a thread that has it for writing.
    bool in_transaction() const { return in_transaction_; }
    void refuse_in_transaction(const char* what) const {
        if (in_transaction_) throw std::invalid_argument(what);
    }
    void open() {
        refuse_in_transaction("a transaction is already open");
        in_transaction_ = true;
        owner_ = std::this_thread::get_id();
    }
    void close() {
        if (!in_transaction_) return;
        in_transaction_ = false;
        closed_.notify_all();
    }

private:
    bool is_foreign() const { return in_transaction_ && owner_ != std::this_thread::get_id(); }

    template <class Lock>
    Lock attempt(TurnLock::Clock::duration patience) const {
        Lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock() && patience.count()) lock = Lock(mutex_, TurnLock::Clock::now() + patience);
        if (lock.owns_lock() && is_foreign()) lock.unlock();
        return lock;
    }

    template <class Lock>
    Lock wait() const {
        Lock lock(mutex_);
        if (is_foreign()) closed_.wait(lock, [&] { return !is_foreign(); });
        return lock;
    }

    mutable TurnLock mutex_;
    mutable std::condition_variable_any closed_;
    bool in_transaction_ = false;
    std::thread::id owner_;
};

}  // namespace ivme
