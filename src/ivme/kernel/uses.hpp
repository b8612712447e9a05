// Claims on things that must not be dropped while they are used: they count their users.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace ivme {

// Each thing is claimed once, until this goes.
template <class T>
class Uses {
public:
    Uses() = default;
    Uses(const Uses& other) : used_(other.used_) {
        for (T* each : used_) ++each->users;
    }
    Uses(Uses&& other) noexcept { used_.swap(other.used_); }
    Uses& operator=(const Uses& other) { return *this = Uses(other); }
    Uses& operator=(Uses&& other) noexcept {
        Uses taken(std::move(other));
        used_.swap(taken.used_);
        return *this;
    }
    ~Uses() {
        for (T* each : used_) --each->users;
    }

    void add(T* used) {
        if (std::find(used_.begin(), used_.end(), used) != used_.end()) return;
        used_.push_back(used);
        ++used->users;
    }

    bool empty() const { return used_.empty(); }
    auto begin() const { return used_.begin(); }
    auto end() const { return used_.end(); }

private:
    std::vector<T*> used_;
};

}  // namespace ivme
