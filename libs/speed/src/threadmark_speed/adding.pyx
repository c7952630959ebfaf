# cython: language_level=3
"""Adding rows to a thread of SQLite where nothing is unusual: the counterpart of the program in
`threadmark_sqlite.adding`, and of the parameters that `threadmark_sqlite.columns` makes for its statements.

Both are the reference. Whatever is unusual is left to them: a thread that is not there or leased, a change that may be
refused, a text that is not ASCII or has to be escaped, an id that is no UUID.
"""

from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cython cimport final

from threadmark_speed.texts cimport UUID_BYTES, is_column, pack_uuid
from threadmark_speed.tuples cimport fields, tracked_tuple

from sqlite3 import IntegrityError, OperationalError

from threadmark.store.contract import Added
from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark.names import to_column

cdef enum:
    MOST_ROWS = 32  # of one statement, as in `threadmark_sqlite.adding`
    WRITE_COLUMNS = 9
    MOST_KNOWN = 256  # threads


cdef inline object text_column(object text):
    """The counterpart of `threadmark.names.to_column`."""
    return text if is_column(text) else to_column(text)


cdef inline object id_column(object text):
    """The counterpart of the function in `threadmark_sqlite.columns`."""
    cdef char packed[UUID_BYTES]
    if pack_uuid(text, packed):
        return PyByteArray_FromStringAndSize(packed, UUID_BYTES)
    return text_column(text)


cdef object blob(object data):
    """A bytearray with the same bytes."""
    if PyBytes_CheckExact(data):
        return PyByteArray_FromStringAndSize(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return bytearray(data)


cpdef tuple checkpoint_columns(thread, row):
    """The parameters of `sql.adding.ADD_CHECKPOINT`."""
    outline, header, check, _ = fields(row)
    _, ns, checkpoint_id, rank, parent, created_at, metadata = fields(outline)
    return (
        thread,
        text_column(ns),
        text_column(rank),
        None if checkpoint_id == rank else text_column(checkpoint_id),
        None if parent is None else text_column(parent),
        created_at,
        text_column(metadata),
        blob(header),
        blob(check),
    )


cpdef list write_columns(thread, rows):
    """The parameters of `sql.adding.ROW_OF_WRITE` for each row, one after the other."""
    cdef list every = []
    cdef object of_ns = None, of_checkpoint = None, of_task = None  # those of the row before: mostly all have one task
    cdef object ns_column = None, checkpoint_column = None, task_column = None
    for row in rows:
        ns, checkpoint_id, task_id, idx, task_path, channel, value, check = fields(row)
        if ns is not of_ns:
            of_ns, ns_column = ns, text_column(ns)
        if checkpoint_id is not of_checkpoint:
            of_checkpoint, checkpoint_column = checkpoint_id, id_column(checkpoint_id)
        if task_id is not of_task:
            of_task, task_column = task_id, id_column(task_id)
        every.append(thread)
        every.append(ns_column)
        every.append(checkpoint_column)
        every.append(task_column)
        every.append(text_column(task_path))
        every.append(idx)
        every.append(text_column(channel))
        every.append(blob(value))
        every.append(blob(check))
    return every


@final
cdef class Adder:
    """Adds what is not unusual. It is made with the statements (the module `sql.adding`), and with
    `placeholders.with_rows`.
    """

    cdef object thread, thread_without, segments, checkpoint, head, head_of_same, take_back, touch, follow, minute
    cdef object writes, records, pack_of_same, record, row_of_segment, row_of_write, with_rows
    cdef long long first_record, pack
    cdef dict known
    """What was found of threads, and the namespaces in which they have a head, by the column of their names.

    It may be of another database, or over: the statement that relies on it proves it.
    """

    def __init__(self, statements, with_rows):
        self.thread, self.thread_without = statements.PLAIN_THREAD, statements.PLAIN_THREAD_WITHOUT
        self.segments, self.row_of_segment = statements.ADD_SEGMENTS, statements.ROW_OF_SEGMENT
        self.checkpoint, self.head, self.touch = statements.ADD_UNDER_RANK, statements.ADD_TO_HEAD, statements.TOUCH
        self.head_of_same, self.take_back = statements.ADD_TO_HEAD_OF_SAME, statements.TAKE_BACK
        self.follow, self.minute = statements.FOLLOW_HEAD, statements.MINUTE
        self.writes, self.records, self.row_of_write = statements.ADD_WRITES, statements.ADD_RECORDS, statements.ROW_OF_WRITE
        self.pack_of_same, self.record = statements.ADD_PACK_OF_SAME, with_rows(self.records, self.row_of_write, 1)
        self.with_rows, self.known = with_rows, {}
        self.first_record, self.pack = FIRST_RECORD, PACK

    def __call__(self, run, fetch, change):
        """Add the rows of a change. Returns what became of it, or None where the program is to see to it.

        `run` and `fetch` are a cursor's. Before None is returned, nothing was changed.
        """
        (
            thread_id, expected, now, segments, checkpoints, writes, _, _,
            token, beginning, only_owner, expects, sorts_last, touches, term, entry, copied,
        ) = fields(change)
        if not (token is None and expects is None and term is None and entry is None and copied is None):
            return None
        if sorts_last or len(checkpoints) > 1:
            return None
        cdef Py_ssize_t ordinary = self.ordinary(writes)
        if ordinary < 0:
            return None
        thread_column = text_column(thread_id)
        cdef bint has_pack = ordinary > 0 and fields(writes[0])[3] == self.pack
        cdef tuple asked = (expected, only_owner, beginning), thread = None
        row = checkpoints[0] if checkpoints else None
        if row is not None:
            thread = self.add_to_same_head(run, thread_column, asked, row)
        elif has_pack and not touches:
            same = self.add_pack_to_same(run, thread_column, asked, segments, writes)
            if same is not None:
                return same
        cdef bint follows = False
        if thread is None:
            found = self.plain(run, fetch, thread_column, row)
            if not found or not admits(found[0], asked):
                return None
            thread = found[0]
            if row is not None:
                if not self.add_checkpoint(run, thread_column, thread, row):
                    return None
                follows = self.is_of_another_minute(thread, row)
            self.remember(thread_column, thread, row)
        number, epoch, _, expires_at, minute = thread
        if segments:
            self.add_segments(run, number, segments)
        if touches:
            run(self.touch, (now, thread_column))
            follows = follows or now // self.minute != minute
        if follows:
            run(self.follow, (number,))
        cdef bint pack_left_out = False
        if writes:
            there = ordinary - self.add_writes(run, number, self.writes, writes[:ordinary])
            pack_left_out = there and has_pack
            self.add_writes(run, number, self.records, writes[ordinary:])
        return outcome(epoch, expires_at, pack_left_out)

    cdef int remember(self, thread_column, tuple thread, row) except -1:
        """Remember a thread that was found, and that a checkpoint was added to its head, where nothing will expire."""
        number, epoch, owner, expires_at, minute = thread
        if expires_at is not None:
            return 0
        known = self.known.get(thread_column)
        cdef set namespaces = set() if known is None else known[1]
        if row is not None:
            _, ns, _, _, _, created_at, _ = fields(fields(row)[0])
            minute = minute if ns else created_at // self.minute
            namespaces.add(ns)
        if len(self.known) >= MOST_KNOWN or len(namespaces) > MOST_KNOWN:
            self.known.clear()
        self.known[thread_column] = (number, epoch, owner, expires_at, minute), namespaces
        return 0

    cdef object add_pack_to_same(self, run, thread_column, tuple asked, segments, writes):
        """Add a pack with its record and segments to a thread that is as it was before. Returns what became of it.

        Returns None, and nothing was added, where the thread is another, or the pack of its task is there.
        """
        known = self.known.get(thread_column)
        if known is None or len(writes) != 2 or asked[1] or not admits(known[0], asked):
            return None
        number, epoch, _, _, _ = known[0]
        cdef list columns = write_columns(number, writes)
        cdef list of_record = columns[WRITE_COLUMNS:]
        columns[WRITE_COLUMNS:] = (number, thread_column, epoch)
        if run(self.pack_of_same, columns).rowcount != 1:
            self.known.pop(thread_column, None)
            return None
        if segments:
            self.add_segments(run, number, segments)
        run(self.record, of_record)
        return outcome(epoch, None, False)

    cdef tuple add_to_same_head(self, run, thread_column, tuple asked, row):
        """Add the newest checkpoint of a thread that is as it was when it was found. Returns the thread's columns.

        Returns None, and nothing is added, where the thread or the checkpoint is another.
        """
        _, ns, checkpoint_id, rank, _, created_at, _ = fields(fields(row)[0])
        known = self.known.get(thread_column)
        if known is None or checkpoint_id != rank or ns not in known[1]:
            return None
        cdef tuple thread = known[0]
        number, epoch, owner, _, minute = thread
        if owner is not None or not admits(thread, asked) or self.is_of_another_minute(thread, row):
            return None
        cdef tuple columns = checkpoint_columns(number, row)
        if not self.add_row(run, columns):
            return None
        ns, rank = columns[1], columns[2]
        of_head = rank, created_at, id_column(checkpoint_id), thread_column, ns, rank, created_at
        if run(self.head_of_same, (*of_head, number, epoch, minute, rank)).rowcount == 1:
            return thread
        run(self.take_back, columns[:3])
        self.known.pop(thread_column, None)
        return None

    cdef bint add_checkpoint(self, run, thread_column, tuple thread, row) except -1:
        """Add a checkpoint whose rank is its id, and to its head. Returns whether it was not there already."""
        cdef tuple columns = checkpoint_columns(thread[0], row)
        if not self.add_row(run, columns):
            return False
        _, _, checkpoint_id, _, _, created_at, _ = fields(fields(row)[0])
        run(self.head, (thread_column, columns[1], columns[2], created_at, id_column(checkpoint_id)))
        return True

    cdef bint add_row(self, run, tuple columns) except -1:
        """Returns whether a checkpoint was added, and was not there already."""
        try:
            run(self.checkpoint, columns[:3] + columns[4:])
        except IntegrityError:
            return False
        return True

    cdef bint is_of_another_minute(self, tuple thread, row) except -1:
        """Whether a checkpoint may be the last update of a thread that has its last one in another minute."""
        _, ns, _, _, _, created_at, _ = fields(fields(row)[0])
        return not ns and created_at // self.minute != thread[4]

    cdef object plain(self, run, fetch, thread, row):
        """The columns of `sql.adding.PLAIN_THREAD`, or None."""
        try:
            if row is not None:
                _, ns, checkpoint_id, rank, _, _, _ = fields(fields(row)[0])
                if checkpoint_id != rank:
                    return None
                run(self.thread_without, (thread, text_column(ns), text_column(checkpoint_id)))
            else:
                run(self.thread, (thread,))
            return fetch()
        except OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
            return None  # no error of SQLite's: the text is damaged, and the program reads it all the same

    cdef Py_ssize_t ordinary(self, writes) except -2:
        """How many writes come before the records of batches.

        Returns -1 where there are others, or packs beside others: those of one task are counted from the first on.
        """
        cdef Py_ssize_t count = 0, seen = 0, packs = 0
        cdef long long index
        for row in writes:
            index = fields(row)[3]
            if index < 0 or (index < self.first_record and count < seen):
                return -1
            if self.pack <= index < self.first_record:
                if index != self.pack + packs:
                    return -1
                packs += 1
            seen += 1
            count += index < self.first_record
        return -1 if packs and packs < count else count

    cdef int add_segments(self, run, number, segments) except -1:
        cdef list every = list(segments.items()), columns
        cdef Py_ssize_t start, count
        for start in range(0, len(every), MOST_ROWS):
            columns = []
            for key, data in every[start : start + MOST_ROWS]:
                columns += number, blob(key), blob(data)
            run(self.with_rows(self.segments, self.row_of_segment, len(columns) // 3), columns)
        return 0

    cdef Py_ssize_t add_writes(self, run, number, statement, rows) except -1:
        """Returns how many were added: the others were there."""
        cdef Py_ssize_t start, count = 0
        for start in range(0, len(rows), MOST_ROWS):
            some = rows[start : start + MOST_ROWS]
            count += run(self.with_rows(statement, self.row_of_write, len(some)), write_columns(number, some)).rowcount
        return count


cdef inline object outcome(epoch, expires_at, bint pack_left_out):
    """The `Added` of a change that was made, in which nothing took the place of anything."""
    return tracked_tuple(Added, (epoch, None, False, False, False, [], 0, expires_at, 0, 0, pack_left_out))


cdef bint admits(tuple thread, tuple asked) except -1:
    """Whether a change may be made that expects an epoch, or that only the owner of a thread may make."""
    expected, only_owner, beginning = asked
    if expected is not None and expected != thread[1]:
        return False
    return not only_owner or thread[2] == owner_column(beginning)


cdef object owner_column(object beginning):
    owner, _, _ = fields(beginning)
    return None if owner is None else text_column(owner)
