// What a function of one coded column gives, by code: each distinct value is computed once, by the caller.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <vector>

#include "dictionary.hpp"

namespace ivme {

// Who changes it has the lock of the database. Others may read meanwhile, with the mutex.
class CodeTable {
public:
    // A doubtful code is one that the caller has found no value for.
    enum State : uint8_t { MISSING, KNOWN, DOUBTFUL, REQUESTED };

    explicit CodeTable(int64_t base) : base_(base) {}

    State state(int64_t code) const {
        size_t at = place(code);
        return at < states_.size() ? static_cast<State>(states_[at]) : MISSING;
    }
    int64_t value(int64_t code) const { return values_[place(code)]; }

    // Notes a code that was looked up and is missing, once.
    void request(int64_t code) {
        std::lock_guard guard(mutex);
        grow(place(code));
        if (states_[place(code)] != MISSING) return;
        requested_.push_back(code);
        states_[place(code)] = REQUESTED;
    }

    const std::vector<int64_t>& requested() const { return requested_; }

    // Requests of a run that was given up.
    void withdraw() {
        std::lock_guard guard(mutex);
        for (int64_t code : requested_) {
            if (states_[place(code)] == REQUESTED) states_[place(code)] = MISSING;
        }
        requested_.clear();
    }

    void fill(int64_t code, int64_t value, bool doubtful) {
        std::lock_guard guard(mutex);
        size_t at = place(code);
        grow(at);
        values_[at] = value;
        states_[at] = doubtful ? DOUBTFUL : KNOWN;
    }

    // To be called before codes change their meaning.
    void forget() {
        std::lock_guard guard(mutex);
        states_ = {};
        values_ = {};
        requested_ = {};
    }

    size_t bytes() const { return values_.capacity() * sizeof(int64_t) + states_.capacity(); }

    std::shared_mutex mutex;

private:
    // NULL comes first.
    size_t place(int64_t code) const {
        if (code == NULL_CODE) return 0;
        return static_cast<size_t>(static_cast<uint64_t>(code) - static_cast<uint64_t>(base_)) + 1;
    }

    void grow(size_t at) {
        if (at < states_.size()) return;
        if (at >> 33) throw std::invalid_argument("not a code of this table's dictionary");
        size_t wanted = std::max<size_t>(64, at + at / 2 + 1);
        values_.resize(wanted);
        states_.resize(wanted, MISSING);
    }

    int64_t base_;
    std::vector<int64_t> values_;
    std::vector<uint8_t> states_;
    std::vector<int64_t> requested_;
};

}  // namespace ivme
