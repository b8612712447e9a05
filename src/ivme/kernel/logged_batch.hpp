// The record of record batches in the log: its text, which Python wrote, and the bytes behind it, which stay where they
// are until they are written.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "log_end.hpp"

namespace ivme {

// The bytes of an object, which does not change while this is there. Made and removed with the GIL.
class HeldBytes {
public:
    explicit HeldBytes(const nb::handle& object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE)) throw nb::python_error();
    }
    ~HeldBytes() { PyBuffer_Release(&view_); }
    HeldBytes(const HeldBytes&) = delete;
    HeldBytes& operator=(const HeldBytes&) = delete;

    std::string_view bytes() const { return {static_cast<const char*>(view_.buf), static_cast<size_t>(view_.len)}; }

private:
    Py_buffer view_;
};

class LoggedBatch {
public:
    // `given` has the text, the bytes behind it, and their sum.
    LoggedBatch(LogEnd& end, const nb::object& given) : end_(end), durable_(end.durable) {
        auto [text, bodies, sum] = nb::cast<std::tuple<nb::bytes, nb::list, uint32_t>>(given);
        sum_ = sum;
        text_ = text.size();
        for (nb::handle body : bodies) size_ += bodies_.emplace_back(body).bytes().size();
        LogEnd::begin(record_);
        record_.append(text.c_str(), text_);
        // What is short is written by one call.
        for (const HeldBytes& body : bodies_) {
            if (size_ <= SHORT) record_.append(body.bytes());
            if (size_ > SHORT) behind_.push_back(body.bytes());
        }
    }

    void add_table(nb::object table) { tables_.push_back(std::move(table)); }

    // Before the transaction, without the GIL.
    void frame() { end_.frame(record_, text_, size_, sum_, durable_); }

    // The last thing in it.
    void append() const {
        nb::gil_scoped_acquire acquire;
        end_.append(record_, tables_.data(), tables_.size(), behind_);
    }

    void committed() { end_.committed(); }

private:
    static constexpr size_t SHORT = 1 << 15;

    LogEnd& end_;
    uint64_t durable_;
    std::string record_;
    std::deque<HeldBytes> bodies_;
    std::vector<std::string_view> behind_;
    size_t text_ = 0, size_ = 0;
    uint32_t sum_ = 0;
    std::vector<nb::object> tables_;
};

}  // namespace ivme
