// The records of a few rows of one table: written by the kernel where the log ends, in the form of store/contents.py.
#pragma once

#include <string>

#include "log_end.hpp"
#include "row_json.hpp"

namespace ivme {

class RowLog {
public:
    explicit RowLog(const nb::list& columns) : json_(columns) {}

    // From now on there is a log, which has the table under its name in JSON; false if there cannot be one, as a column
    // is of a kind that only Python writes.
    bool set(nb::object end, nb::object table, const std::string& name) {
        if (!json_.takes_all()) return false;
        end_ = &nb::cast<LogEnd&>(end);
        kept_ = std::move(end);
        table_ = std::move(table);
        before_rows_ = "{\"batch\":[{\"table\":" + name + ",\"rows\":";
        return true;
    }
    LogEnd* end() const { return end_; }
    const nb::object& table() const { return table_; }

    // False if Python has something to do first.
    bool begin(const int64_t* columns, size_t n, const int64_t* weights) {
        if (!end_) return true;
        if (!end_->is_ready()) return false;
        LogEnd::begin(record_);
        record_ += before_rows_;
        json_.write_rows(columns, n, record_);
        record_ += ",\"weights\":[";
        for (size_t row = 0; row < n; ++row) {
            if (row) record_ += ',';
            record_ += std::to_string(weights[row]);
        }
        record_ += "]}]}";
        end_->frame(record_);
        return true;
    }
    // The last thing in the transaction.
    void append() {
        if (end_) end_->append(record_, &table_, 1);
    }
    void committed() {
        if (end_) end_->committed();
    }

private:
    RowJson json_;
    LogEnd* end_ = nullptr;
    std::string before_rows_, record_;
    nb::object kept_, table_;
};

}  // namespace ivme
