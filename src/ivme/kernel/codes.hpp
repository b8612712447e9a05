// Which codes of dictionaries are held, so that those that are not can be given again (decision 0118).
//
// A holder of words does not say which of them are codes: the codes of a dictionary are numbers that other values
// hardly ever are, and one that is only keeps a string for longer. So no holder can be wrong about its columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "array.hpp"
#include "dictionary.hpp"

namespace ivme {

class CodeMarks {
public:
    explicit CodeMarks(const std::vector<Dictionary*>& dictionaries) : marks_(dictionaries.size()) {
        for (size_t i = 0; i < dictionaries.size(); ++i) {
            Dictionary& dictionary = *dictionaries[i];
            auto base = static_cast<uint64_t>(dictionary.base());
            marks_[i].dictionary = &dictionary;
            marks_[i].bits.zeroed(dictionary.high() / 64 + 1);
            least_ = std::min(least_, base);
            end_ = std::max(end_, base + dictionary.high());
        }
    }

    // Whether the word is a code; if it is, it is held.
    bool mark(int64_t word) {
        uint64_t distance = static_cast<uint64_t>(word) - least_;
        return distance < end_ - least_ && mark_code(static_cast<uint64_t>(word));
    }

    // Whether a word between these, which are included, may be a code.
    bool may_mark(int64_t least, int64_t most) const {
        return std::any_of(marks_.begin(), marks_.end(), [&](const Marks& each) {
            int64_t base = each.dictionary->base();
            return most >= base && least < base + static_cast<int64_t>(each.dictionary->high());
        });
    }

    void mark_all(const int64_t* words, size_t n) {
        for (size_t i = 0; i < n; ++i) mark(words[i]);
    }

    // Takes back all codes that are not held. On a failure some dictionaries may not have been swept.
    void sweep() {
        for (Marks& each : marks_) each.dictionary->sweep(each.bits.data());
    }

private:
    struct Marks {
        Dictionary* dictionary;
        Array<uint64_t> bits;
    };

    bool mark_code(uint64_t word) {
        for (Marks& each : marks_) {
            uint64_t id = word - static_cast<uint64_t>(each.dictionary->base());
            if (id >= each.dictionary->high()) continue;
            each.bits[id / 64] |= uint64_t{1} << (id % 64);
            return true;
        }
        return false;
    }

    std::vector<Marks> marks_;
    uint64_t least_ = ~uint64_t{0}, end_ = 0;
};

}  // namespace ivme
