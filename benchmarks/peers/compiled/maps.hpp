// Flat hash maps as a compiler of triggers would use them: open addressing, linear probing, no undo, no allocation a
// row.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

inline uint64_t mixed(uint64_t word) {
    word *= 0x9E3779B97F4A7C15ull;
    return word ^ (word >> 32);
}
inline uint64_t hashed(int64_t key) { return mixed(static_cast<uint64_t>(key)); }
inline uint64_t hashed(std::string_view key) {
    uint64_t hash = 14695981039346656037ull;
    for (char each : key) hash = (hash ^ static_cast<unsigned char>(each)) * 1099511628211ull;
    return mixed(hash);
}

template <class Key, class Value>
class FlatMap {
public:
    Value* find(const Key& key) {
        if (slots_.empty()) return nullptr;
        for (size_t at = hashed(key) & mask_;; at = (at + 1) & mask_) {
            if (!slots_[at].used) return nullptr;
            if (slots_[at].key == key) return &slots_[at].value;
        }
    }

    Value& operator[](const Key& key) {
        if ((size_ + 1) * 5 > slots_.size() * 3) grow();
        size_t at = hashed(key) & mask_;
        for (; slots_[at].used; at = (at + 1) & mask_) {
            if (slots_[at].key == key) return slots_[at].value;
        }
        slots_[at].used = true;
        slots_[at].key = key;
        ++size_;
        return slots_[at].value;
    }

    void erase(const Key& key) {
        if (slots_.empty()) return;
        size_t at = hashed(key) & mask_;
        for (; slots_[at].used && !(slots_[at].key == key); at = (at + 1) & mask_) {}
        if (!slots_[at].used) return;
        --size_;
        for (size_t next = (at + 1) & mask_; slots_[next].used; next = (next + 1) & mask_) {
            size_t home = hashed(slots_[next].key) & mask_;
            if (((next - home) & mask_) < ((next - at) & mask_)) continue;
            slots_[at] = std::move(slots_[next]);
            at = next;
        }
        slots_[at] = Slot{};
    }

    size_t size() const { return size_; }

    template <class Visit>
    void each(Visit visit) {
        for (Slot& slot : slots_) {
            if (slot.used) visit(slot.key, slot.value);
        }
    }

private:
    struct Slot {
        Key key{};
        Value value{};
        bool used = false;
    };

    void grow() {
        std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
        old.swap(slots_);
        mask_ = slots_.size() - 1;
        for (Slot& slot : old) {
            if (!slot.used) continue;
            size_t at = hashed(slot.key) & mask_;
            while (slots_[at].used) at = (at + 1) & mask_;
            slots_[at] = std::move(slot);
        }
    }

    std::vector<Slot> slots_;
    size_t size_ = 0, mask_ = 0;
};
