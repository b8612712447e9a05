// New strings get their codes on several threads, and the same codes as on one: those that are equal are found and put
// into the table by parts of their hashes, copied piece by piece, and numbered in their order in between.
#pragma once

#include <bit>
#include <string_view>
#include <vector>

#include "dictionary.hpp"
#include "workers.hpp"

namespace ivme {

// A string that no code was found for, and the row that it is of. `first` is the first that is equal, which has the id.
struct NewString {
    const char* text;
    uint32_t length, tag, row;
    uint32_t id = NIL;
    NewString* first = nullptr;
    uint64_t start = 0;

    std::string_view view() const { return {text, length}; }
};

// Strings of rows that lie behind each other, and where the codes of the column are.
struct NewStrings {
    int64_t* codes;
    std::vector<NewString> strings;
};

class ParallelEntry {
public:
    // All that is new in some columns, in the order in which codes are given; the caller holds the dictionary.
    ParallelEntry(Dictionary& dictionary, std::vector<NewStrings*> pieces, unsigned threads)
        : dictionary_(dictionary),
          pieces_(std::move(pieces)),
          threads_(threads),
          bits_(static_cast<unsigned>(std::bit_width(threads - 1))),
          left_(size_t{1} << bits_) {}

    void run() {
        in_parallel(threads_, left_.size(), [&](size_t part) { find_equal(part); });
        number();
        size_t parts = left_.size();
        in_parallel(threads_, parts + pieces_.size(), [&](size_t task) {
            if (task < parts) return insert(task);
            write(*pieces_[task - parts]);
        });
        for (const auto& left : left_) {
            for (const NewString* string : left) dictionary_.table_.place(string->tag, string->id);
        }
    }

private:
    template <class Visit>
    void each_of(size_t part, Visit visit) {
        for (NewStrings* piece : pieces_) {
            for (NewString& string : piece->strings) {
                if (string.tag >> (32 - bits_) == part) visit(string);
            }
        }
    }

    // Finds the first of all equal strings of a part, by a table that is forgotten.
    void find_equal(size_t part) {
        size_t count = 0;
        each_of(part, [&](const NewString&) { ++count; });
        if (!count) return;
        left_[part].reserve(count);
        std::vector<NewString*> slots(std::bit_ceil(2 * count));
        size_t mask = slots.size() - 1;
        each_of(part, [&](NewString& string) {
            for (size_t i = string.tag & mask;; i = (i + 1) & mask) {
                if (!slots[i]) slots[i] = &string;
                NewString* known = slots[i];
                if (known->tag != string.tag || known->view() != string.view()) continue;
                string.first = known;
                return;
            }
        });
    }

    // Room for everything comes first, so that a failure changes nothing.
    void number() {
        Dictionary& to = dictionary_;
        size_t strings = 0, bytes = 0;
        each_first([&](NewString& string) {
            string.start = to.text_.size() + bytes;
            bytes += StoredText::bytes(string.length);
            ++strings;
        });
        to.check_room(strings, bytes);
        to.starts_.reserve(to.starts_.size() + strings);
        to.text_.reserve(to.text_.size() + bytes);
        to.table_.reserve(to.table_.size() + std::max<size_t>(strings, size_t{1} << bits_));
        to.text_.resize(to.text_.size() + bytes);
        each_first([&](NewString& string) {
            string.id = to.take_id(StoredText::word(string.start, string.length));
            to.count_added(Dictionary::weight(string.length));
        });
        to.table_.count(strings);
    }
    template <class Visit>
    void each_first(Visit visit) {
        for (NewStrings* piece : pieces_) {
            for (NewString& string : piece->strings) {
                if (string.first == &string) visit(string);
            }
        }
    }

    // The bytes of strings, and the codes of their rows.
    void write(NewStrings& piece) {
        for (NewString& string : piece.strings) {
            piece.codes[string.row] = dictionary_.base_ + string.first->id;
            if (string.first == &string) StoredText::write(dictionary_.text_.data() + string.start, string.view());
        }
    }

    // Puts those of a part into the slots that are that part's; those that are left found none.
    void insert(size_t part) {
        each_of(part, [&](const NewString& string) {
            if (string.first != &string) return;
            if (!dictionary_.table_.place_within(string.tag, string.id, part, bits_)) left_[part].push_back(&string);
        });
    }

    Dictionary& dictionary_;
    std::vector<NewStrings*> pieces_;
    unsigned threads_, bits_;
    std::vector<std::vector<const NewString*>> left_;  // by part; with room for all
};

}  // namespace ivme
