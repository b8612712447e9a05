// Strings get the codes on several threads that one thread gives them, in dictionaries that grow and are swept.
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "../../../src/ivme/kernel/parallel_entry.hpp"

using namespace ivme;

namespace {

// Strings one behind the other, as Arrow has them.
struct Column {
    std::string text;
    std::vector<int32_t> at{0};

    void add(const std::string& string) {
        text += string;
        at.push_back(static_cast<int32_t>(text.size()));
    }
    size_t n() const { return at.size() - 1; }
};

Column made(std::mt19937& random, size_t rows, unsigned kinds) {
    Column column;
    for (size_t i = 0; i < rows; ++i) {
        unsigned number = random() % kinds;
        column.add(std::string(number % 300, 'x') + std::to_string(number));
    }
    return column;
}

std::vector<int64_t> on_one(Dictionary& dictionary, const Column& column) {
    std::vector<int64_t> codes(column.n());
    auto valid = [](size_t) { return true; };
    dictionary.encode_all(column.text.data(), column.at.data(), column.n(), valid, codes.data());
    return codes;
}

// The rows of a piece, and what is new among them.
void find(const Dictionary& dictionary, const Column& column, size_t first, size_t end, NewStrings& found) {
    std::vector<uint32_t> tags(end - first);
    auto valid = [](size_t) { return true; };
    dictionary.find_all(column.text.data(), column.at.data(), first, end, valid, found.codes, tags.data());
    for (size_t i = first; i < end; ++i) {
        if (!dictionary.is_absent(found.codes[i])) continue;
        auto length = static_cast<uint32_t>(column.at[i + 1] - column.at[i]);
        found.strings.push_back({column.text.data() + column.at[i], length, tags[i - first], static_cast<uint32_t>(i)});
    }
}

std::vector<int64_t> on_many(Dictionary& dictionary, const Column& column, unsigned threads) {
    constexpr size_t PIECE = 100;
    std::vector<int64_t> codes(column.n());
    std::vector<NewStrings> pieces;
    for (size_t first = 0; first < column.n(); first += PIECE) pieces.push_back({codes.data(), {}});
    in_parallel(threads, pieces.size(), [&](size_t i) {
        find(dictionary, column, i * PIECE, std::min(column.n(), (i + 1) * PIECE), pieces[i]);
    });
    std::vector<NewStrings*> absent;
    for (NewStrings& piece : pieces) absent.push_back(&piece);
    ParallelEntry(dictionary, absent, threads).run();
    return codes;
}

// Takes back the codes of every other string.
void sweep(Dictionary& dictionary, uint64_t marks) {
    std::vector<uint64_t> bits(dictionary.high() / 64 + 1, marks);
    dictionary.sweep(bits.data());
}

bool same_texts(const Dictionary& dictionary, const Column& column, const std::vector<int64_t>& codes) {
    for (size_t i = 0; i < column.n(); ++i) {
        std::string_view wanted(column.text.data() + column.at[i],
                                static_cast<size_t>(column.at[i + 1] - column.at[i]));
        int64_t code = 0;
        if (dictionary.text(codes[i]) != wanted || !dictionary.find(wanted, &code) || code != codes[i]) return false;
    }
    return true;
}

}  // namespace

int main() {
    size_t strings = 0;
    for (unsigned seed = 0; seed < 12; ++seed) {
        std::mt19937 random(seed);
        Dictionary one(seed, 1000), many(seed, 1000);
        for (unsigned round = 0; round < 20; ++round) {
            Column column = made(random, 1 + random() % 1500, seed % 3 ? 40 : 4000);
            std::vector<int64_t> expected = on_one(one, column);
            std::vector<int64_t> found = on_many(many, column, 2 + seed % 4);
            if (expected != found || one.size() != many.size() || !same_texts(many, column, found)) {
                std::printf("seed %u, round %u: other codes\n", seed, round);
                return 1;
            }
            strings += column.n();
            uint64_t marks = random() % 4 ? ~uint64_t{0} : 0x5555555555555555ull;
            sweep(one, marks);
            sweep(many, marks);
        }
    }
    std::printf("%zu strings\n", strings);
    return 0;
}
