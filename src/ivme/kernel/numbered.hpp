// Things that Python knows by their numbers.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ivme {

// `Owner` is a pointer that owns what it points to. A number is given again once its thing is gone, so that many that
// come and go take no more room than those that are there.
template <class Owner>
class Numbered {
public:
    explicit Numbered(const char* kind) : kind_(kind) {}

    const Owner& operator[](size_t number) const {
        if (number >= owners_.size() || !owners_[number]) {
            throw std::out_of_range(std::string("there is no such ") + kind_);
        }
        return owners_[number];
    }

    size_t add(Owner owner) {
        if (free_.empty()) {
            free_.reserve(owners_.size() + 1);  // so that a number can be given back without memory
            owners_.push_back(std::move(owner));
            return owners_.size() - 1;
        }
        size_t number = free_.back();
        free_.pop_back();
        owners_[number] = std::move(owner);
        return number;
    }

    // Removes it and returns it; its number is free again.
    Owner take(size_t number) {
        (*this)[number];
        free_.push_back(number);
        return std::exchange(owners_[number], nullptr);
    }

    // Visits all that are there, with their numbers.
    template <class Visit>
    void each(Visit visit) const {
        for (size_t number = 0; number < owners_.size(); ++number) {
            if (owners_[number]) visit(number, *owners_[number]);
        }
    }

    std::vector<size_t> numbers() const {
        std::vector<size_t> found;
        each([&](size_t number, const auto&) { found.push_back(number); });
        return found;
    }

private:
    const char* kind_;
    std::vector<Owner> owners_;
    std::vector<size_t> free_;
};

}  // namespace ivme
