// The end of a directory's log, where the kernel writes the records of a few rows itself.
//
// `ivme.store.log.Log` has it, and writes all other records; record.py says what a record is. Both hold the database's
// lock when they write, and the GIL when they change what is here.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "blake2.hpp"
#include "portable.hpp"
#include "python_api.hpp"

namespace ivme {

namespace nb = nanobind;

// A record could not be written: what it says must not take effect.
struct LogFailed : std::exception {};

class LogEnd {
public:
    using End = std::tuple<uint64_t, uint64_t, uint64_t>;

    // `calls` are the functions by which files are written, of which `write` is the plain one: tests put others there.
    LogEnd(std::string identity, nb::dict calls, nb::object write, nb::set changed_tables)
        : identity_(std::move(identity)),
          calls_(std::move(calls)),
          write_(std::move(write)),
          changed(std::move(changed_tables)) {}

    int descriptor = -1;
    uint64_t first = 0, place = 0;      // of the last segment: its first record, and the place behind its last
    uint64_t written = 0, durable = 0;  // the last records in the file, and on the disk
    uint64_t older = 0, limit = 0;      // bytes of segments before it; from `limit` on a snapshot is due
    bool usable = false;                // open, and nothing has failed
    bool unfinished = false;            // something may be behind the end that is not a record
    bool awake = false;                 // what syncs the log knows that there is something to do
    End told{0, 0, 0};                  // the last end whose committer was told, perhaps before it is durable
    End taken{0, 0, 0};                 // the last end that the kernel committed
    bool waits = true;                  // committers wait until their records are durable
    nb::object wake = nb::none();

    // Whether the kernel may write a record; else Python has something to do first, or knows what to say.
    bool is_ready() const { return usable && !unfinished && older + place < limit && process_number() == owner_; }

    // The start of a record, behind which its text goes.
    static void begin(std::string& record) { record.assign(HEADER_BYTES + Blake2::DIGEST_BYTES, '\0'); }

    // Says in a record that has its text which one it is, and sums it up: the next, with bytes behind its text that
    // have this CRC-32.
    void frame(std::string& record, size_t text, uint64_t bytes, uint32_t sum, uint64_t known_durable) const {
        auto length = static_cast<uint32_t>(text);
        uint64_t words[] = {bytes, written + 1, known_durable};
        std::memcpy(record.data(), "ivmS", 4);
        std::memcpy(record.data() + 4, &length, sizeof length);
        std::memcpy(record.data() + 8, words, sizeof words);
        Blake2 digest;
        digest.update(identity_.data(), identity_.size());
        digest.update(record.data(), HEADER_BYTES);
        digest.update(record.data() + HEADER_BYTES + Blake2::DIGEST_BYTES, text);
        digest.update(reinterpret_cast<const char*>(&sum), sizeof sum);
        digest.finish(record.data() + HEADER_BYTES);
    }
    // The same for a record that is all text.
    void frame(std::string& record) const {
        frame(record, record.size() - HEADER_BYTES - Blake2::DIGEST_BYTES, 0, 0, durable);
    }

    // Writes the next record, and what is behind it, which changes tables. The last thing in a transaction: what
    // follows cannot fail.
    void append(const std::string& record, const nb::object* tables, size_t n,
                const std::vector<std::string_view>& behind = {}) {
        for (size_t i = 0; i < n; ++i) {
            if (PySet_Add(changed.ptr(), tables[i].ptr())) throw nb::python_error();
        }
        unfinished = true;
        uint64_t end = write_all(record, place);
        for (std::string_view bytes : behind) end = write_all(bytes, end);
        unfinished = false;
        ++written;
        place = end;
    }

    // The record that was appended last has taken effect.
    void committed() {
        taken = {first, written, place};
        if (waits) return;
        told = taken;
        if (awake || wake.is_none()) return;
        awake = true;
        try {
            wake();
        } catch (...) {
            awake = false;
            throw;
        }
    }

private:
    static constexpr size_t HEADER_BYTES = 32;

    static constexpr size_t SHORT = 1 << 14;

    // The place behind what is written.
    uint64_t write_all(std::string_view data, uint64_t at) {
        nb::object write = nb::borrow(PyDict_GetItemString(calls_.ptr(), "write"));
        while (!data.empty()) {
            size_t done = write.is(write_) ? write_plainly(data, at) : write_by(write, data, at);
            data.remove_prefix(done);
            at += done;
        }
        return at;
    }

    // The GIL stays for what is short: to get it back among busy threads takes longer than to write that.
    size_t write_plainly(std::string_view data, uint64_t at) const {
        auto write = [&] { return write_at(descriptor, data.data(), data.size(), at); };
        int64_t n;
        if (data.size() <= SHORT) {
            n = write();
        } else {
            nb::gil_scoped_release release;
            n = write();
        }
        if (n < 0 && errno == EINTR) return 0;
        if (n < 0) throw LogFailed();
        return static_cast<size_t>(n);
    }

    size_t write_by(const nb::object& write, std::string_view data, uint64_t at) const {
        try {
            return nb::cast<size_t>(write(descriptor, nb::bytes(data.data(), data.size()), at));
        } catch (nb::python_error& error) {
            if (error.matches(PyExc_OSError)) throw LogFailed();
            throw;
        }
    }

    std::string identity_;  // of the directory
    nb::dict calls_;
    nb::object write_;
    int owner_ = process_number();

public:
    nb::set changed;  // the tables that records have changed since the last snapshot
};

}  // namespace ivme
