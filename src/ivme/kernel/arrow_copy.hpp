// A record batch in memory of its own: its giver may use the memory again once it is asked for the next batch.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "array.hpp"
#include "arrow.hpp"
#include "python_api.hpp"

namespace ivme {

class ArrowCopy {
public:
    // Of columns that have codes. Null if offsets of strings are in doubt. Columns that are `left_out` are the giver's
    // for as long as he keeps them, and full of NULLs for Arrow.
    static std::shared_ptr<const ArrowCopy> make(const std::vector<ArrowColumn>& columns, const ArrowArray& given,
                                                 const std::vector<unsigned>& left_out) {
        auto copy = std::make_shared<ArrowCopy>();
        copy->columns_.resize(columns.size());
        copy->children_.resize(columns.size());
        std::vector<Part> parts;
        for (unsigned c = 0; c < columns.size(); ++c) {
            if (has_place(left_out, c)) continue;
            if (!add_parts(columns[c].format, *given.children[c], copy->columns_[c].buffers, parts)) return nullptr;
        }
        size_t total = 0;
        for (const Part& part : parts) total += padded(part.bytes);
        copy->bytes_.resize(total);
        uint8_t* to = copy->bytes_.data();
        for (const Part& part : parts) {
            part.write(to);
            *part.place = to;
            to += padded(part.bytes);
        }
        copy->describe(columns, given.length);
        for (unsigned c : left_out) copy->children_[c] = *given.children[c];
        copy->left_out_ = left_out;
        return copy;
    }

    const ArrowArray& array() const { return whole_; }

    // What Arrow takes over, like the second capsule of `__arrow_c_array__`.
    static nanobind::object exported(const std::shared_ptr<const ArrowCopy>& copy) {
        auto* array = new ArrowArray;
        nanobind::capsule capsule(array, "arrow_array", [](void* held) noexcept {
            auto* given = static_cast<ArrowArray*>(held);
            if (given->release) given->release(given);
            delete given;
        });
        auto* shown = new Exported{copy, copy->children_, {}, {}, {}};
        copy->show_nulls(*shown);
        for (ArrowArray& child : shown->children) shown->pointers.push_back(&child);
        *array = copy->whole_;
        array->children = shown->pointers.data();
        array->private_data = shown;
        return capsule;
    }

private:
    struct Column {
        const void* buffers[3] = {};  // which are NULL, and its values; of strings, their offsets and their bytes
    };
    struct Exported {
        std::shared_ptr<const ArrowCopy> copy;
        std::vector<ArrowArray> children;
        std::vector<ArrowArray*> pointers;
        std::vector<uint8_t> zeroes;
        Column nulls;
    };

    // What is copied to one place.
    struct Part {
        const uint8_t* from;
        size_t bytes;
        const void** place;
        size_t first_bit = 0;  // in the first byte, of bits
        size_t last_byte = 0;  // that has any of the bits
        int32_t less = 0;      // by how much offsets become less
        bool are_offsets = false;

        void write(uint8_t* to) const {
            if (are_offsets) {
                ArrowNumbers<uint32_t> offsets(from, 0);
                for (size_t i = 0; i < bytes / sizeof(uint32_t); ++i) {
                    uint32_t offset = offsets[i] - static_cast<uint32_t>(less);
                    std::memcpy(to + i * sizeof offset, &offset, sizeof offset);
                }
            } else if (first_bit) {
                for (size_t i = 0; i < bytes; ++i) {
                    unsigned next = i < last_byte ? from[i + 1] : 0;
                    to[i] = static_cast<uint8_t>(from[i] >> first_bit | next << (8 - first_bit));
                }
            } else if (bytes) {
                std::memcpy(to, from, bytes);
            }
        }
    };

    static size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

    static size_t width_of(const std::string& format) {
        return format == "tdD" ? 4 : format.starts_with("d:") ? 16 : 8;
    }

    static Part bits(const void* from, size_t first, size_t n, const void** place) {
        return {static_cast<const uint8_t*>(from) + first / 8, (n + 7) / 8, place, first % 8, (first % 8 + n - 1) / 8};
    }

    static bool add_parts(const std::string& format, const ArrowArray& given, const void** buffers,
                          std::vector<Part>& parts) {
        auto n = static_cast<size_t>(given.length), first = static_cast<size_t>(given.offset);
        if (!n) return true;
        if (given.null_count && given.buffers[0]) parts.push_back(bits(given.buffers[0], first, n, &buffers[0]));
        const auto* values = static_cast<const uint8_t*>(given.buffers[1]);
        if (format == "b") {
            parts.push_back(bits(values, first, n, &buffers[1]));
        } else if (format != "u" && format != "z") {
            parts.push_back({values + first * width_of(format), n * width_of(format), &buffers[1]});
        } else {
            ArrowNumbers<int32_t> at(values, given.offset);
            int32_t begin = at[0], end = at[n];
            if (begin < 0 || end < begin) return false;
            parts.push_back(
                {values + first * sizeof(int32_t), (n + 1) * sizeof(int32_t), &buffers[1], 0, 0, begin, true});
            const auto* text = static_cast<const uint8_t*>(given.buffers[2]);
            parts.push_back({text + begin, static_cast<size_t>(end - begin), &buffers[2]});
        }
        return true;
    }

    void describe(const std::vector<ArrowColumn>& columns, int64_t rows) {
        for (size_t c = 0; c < columns.size(); ++c) {
            bool is_text = columns[c].format == "u" || columns[c].format == "z";
            const void** buffers = columns_[c].buffers;
            children_[c] = {rows,   buffers[0] ? -1 : 0, 0, is_text ? 3 : 2, 0, buffers, nullptr, nullptr, release,
                            nullptr};
            pointers_.push_back(&children_[c]);
        }
        auto n = static_cast<int64_t>(columns.size());
        whole_ = {rows, 0, 0, 1, n, none_, pointers_.data(), nullptr, release, nullptr};
    }

    // No bit of zeroes says that a value is there, and strings from zero to zero are empty.
    void show_nulls(Exported& shown) const {
        if (left_out_.empty()) return;
        shown.zeroes.resize((static_cast<size_t>(whole_.length) + 1) * MOST_WIDTH);
        std::fill_n(shown.nulls.buffers, 3, shown.zeroes.data());
        for (unsigned c : left_out_) {
            shown.children[c] = {
                whole_.length, -1,      0,      children_[c].n_buffers, 0, shown.nulls.buffers, nullptr,
                nullptr,       release, nullptr};
        }
    }

    static void release(ArrowArray* array) {
        delete static_cast<Exported*>(array->private_data);  // which columns have none of
        array->release = nullptr;
    }

    static constexpr size_t MOST_WIDTH = 16;  // of a value
    Array<uint8_t> bytes_;
    std::vector<unsigned> left_out_;
    std::vector<Column> columns_;
    std::vector<ArrowArray> children_;
    std::vector<ArrowArray*> pointers_;
    const void* none_[1] = {};
    ArrowArray whole_{};
};

}  // namespace ivme
