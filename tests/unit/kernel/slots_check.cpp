// Tables of ids follow a multimap through insertions, deletions and growing, with tags that are crowded: at the first
// bucket, at the last, whose ids go over the end, and everywhere.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../../../src/ivme/kernel/hash.hpp"

using namespace ivme;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

class Checked {
public:
    explicit Checked(unsigned seed) : random_(seed) {}

    void insert(uint32_t tag, bool one_by_one) {
        auto id = static_cast<uint32_t>(tags_.size());
        if (one_by_one) {
            table_.reserve_one();
        } else if (table_.size() == room_) {
            table_.reserve(room_ += 1 + random_() % 5000);
        }
        room_ = std::max(room_, table_.size() + 1);
        table_.insert(tag, id);
        tags_.push_back(tag);
        there_.push_back(id);
    }

    void erase() {
        if (there_.empty()) return;
        std::swap(there_[random_() % there_.size()], there_.back());
        table_.erase(tags_[there_.back()], there_.back());
        gone_.push_back(there_.back());
        there_.pop_back();
    }

    void renumber() {
        if (there_.empty()) return;
        uint32_t& id = there_[random_() % there_.size()];
        auto fresh = static_cast<uint32_t>(tags_.size());
        tags_.push_back(tags_[id]);
        table_.renumber(tags_[id], id, fresh);
        gone_.push_back(id);
        id = fresh;
    }

    void check(size_t every) {
        require(table_.size() == there_.size(), "the size is wrong");
        for (size_t i = random_() % every; i < there_.size(); i += every) require(has(there_[i]), "an id is lost");
        for (size_t i = random_() % every; i < gone_.size(); i += every) require(!has(gone_[i]), "an id came back");
    }
    void check_all() {
        check(1);
        std::vector<uint32_t> seen;
        table_.each([&](uint32_t tag, uint32_t id) {
            require(tags_[id] == tag, "a tag is wrong");
            seen.push_back(id);
        });
        std::sort(seen.begin(), seen.end());
        std::sort(there_.begin(), there_.end());
        require(seen == there_, "not each id is visited once");
    }

private:
    bool has(uint32_t id) const {
        return table_.find(tags_[id], [&](uint32_t known) { return known == id; }) == id;
    }

    std::mt19937 random_;
    IdTable table_;
    uint64_t room_ = 0;
    std::vector<uint32_t> tags_, there_, gone_;
};

uint32_t tag_of(std::mt19937& random, unsigned kind) {
    uint32_t any = static_cast<uint32_t>(random());
    if (kind == 1) return any >> 18;                       // the first buckets, 0 among them
    if (kind == 2) return ~(any >> 18);                    // the last ones
    if (kind == 3) return any & 1 ? any % 3 : ~(any % 3);  // hardly any but the ends
    return any;
}

}  // namespace

int main() {
    unsigned steps = 0;
    for (unsigned seed = 0; seed < 12; ++seed) {
        std::mt19937 random(seed);
        unsigned kind = seed % 4, growth = 2 + seed % 3, most = kind == 3 ? 400 : 4'500;
        Checked checked(seed);
        for (unsigned n = 0; n < most; ++n, ++steps) {
            bool one_by_one = (n >> 10) % 2 || kind == 3;
            for (unsigned i = 0; i < growth; ++i) checked.insert(tag_of(random, kind), one_by_one);
            for (unsigned i = 0; i + 1 < growth; ++i) checked.erase();
            if (n % 3 == 0) checked.renumber();
            if (n % 256 == 0) checked.check(97);
        }
        checked.check_all();
        for (unsigned part = 0; part < 4; ++part) {
            for (unsigned n = 0; n < most / 4; ++n) checked.erase();
            checked.check_all();
        }
    }
    std::printf("%u steps\n", steps);
}
