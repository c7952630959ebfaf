# cython: language_level=3
"""Running operations and programs: the counterparts of `run` and `play` in `threadmark.runtime.program`, and for connections of
sqlite3 those of `threadmark_sqlite.driver.playing`.
"""

from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cython cimport final

cdef extern from "Python.h":
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT

    PySendResult PyIter_Send(object generator, object sent, PyObject **given) except PYGEN_ERROR
    bint Py_IS_TYPE(object found, type expected)


def run(driver, operation):
    """Drive an operation on the caller's thread."""
    return play(operation, driver.run)


cpdef play(generator, answer):
    """Answer everything that a generator yields until it returns. Errors of `answer` are thrown into it."""
    cdef object asked, result = None, failure = None
    cdef bint has_ended = False
    try:
        while True:
            asked = next_asked(generator, result, failure, &has_ended)
            if has_ended:
                return asked
            failure = None
            try:
                result = answer(asked)
            except Exception as error:  # it may know what to do; if not, the error passes through
                failure = error
    except:
        generator.close()
        raise


cdef object next_asked(object generator, object sent, object failure, bint *has_ended):
    """Send an answer, or throw a failure. Returns what the generator asks next, or what it returns where it has ended."""
    cdef PyObject *given = NULL
    if failure is not None:
        try:
            return generator.throw(failure)
        except StopIteration as stop:
            has_ended[0] = True
            return stop.value
    has_ended[0] = PyIter_Send(generator, sent, &given) == PYGEN_RETURN
    asked = <object>given
    Py_DECREF(asked)  # the reference that was given
    return asked


@final
cdef class AtOnce:
    """A program that mostly ends with its first step, the call of a compiled function.

    A `Player` calls that function itself, without a generator. Where the answer is None, nothing was done, and the
    program goes on as the one that `steps` returns for the same argument.
    """

    cdef object step, steps, program
    cdef bint has_asked

    def __init__(self, step not None, steps not None):
        self.step, self.steps = step, steps

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, answer):
        if self.program is not None:
            return self.program.send(answer)
        if not self.has_asked:
            self.has_asked = True
            return self.step
        if answer is not None:
            raise StopIteration(answer)
        return next(self.begun())

    def throw(self, *error):
        if self.program is not None:
            return self.program.throw(*error)
        raise error[0] if len(error) == 1 else error[1]

    def close(self):
        if self.program is not None:
            self.program.close()

    cdef begun(self):
        self.program = self.steps(self.step[1])
        return self.program


cdef class Player:
    """Runs programs, each with one cursor for all of its statements: sqlite3 takes as long to make one as to use it."""

    cdef object begin_write, begin_read, commit, rollback
    cdef type query, direct, alone
    cdef object execute, again, expect_plausible
    cdef Py_ssize_t few, much

    def __init__(self, sql, tuple steps, execute, again, tuple bounds):
        """`steps` are the types of a statement, of a function and of a statement that is mostly the only one.

        A function is called with two methods of a cursor and its argument. Every other step is left to `execute`, and
        what failed to `again`, which is given the error. `bounds` are those of `threadmark.bounded_sqlite`.
        """
        self.begin_write, self.begin_read = sql.BEGIN_WRITE, sql.BEGIN_READ
        self.commit, self.rollback = sql.COMMIT, sql.ROLLBACK
        self.query, self.direct, self.alone = steps
        self.execute, self.again = execute, again
        self.few, self.much, self.expect_plausible = bounds

    def played(self, connection, program):
        """Answer everything that a program asks until it returns. Errors are thrown into it."""
        return _Playing(self, connection).play(program)

    def committed(self, connection, transaction, waiting=None, join=None):
        """Run a program in a transaction, which is rolled back if anything fails. Returns its result.

        If anybody is `waiting` by the time of the commit, `join` lets them share it.
        """
        playing = _Playing(self, connection)
        try:
            if transaction.writes:
                playing.begin(self.begin_write)
                result = playing.play(transaction.program())
            else:
                playing.reads = True
                result = playing.play(transaction.program())
                if playing.is_another:
                    playing.is_another = False
                    result = playing.play(transaction.program())
            if waiting and join is not None:
                join()
            if playing.has_begun:
                playing.run(self.commit)
        except:
            if connection.in_transaction:
                connection.execute(self.rollback)
            raise
        return result


cdef class _Playing:
    """One cursor, and what the program that uses it has asked so far."""

    cdef Player player
    cdef object connection, run, fetch, fetch_many
    cdef bint reads
    """Whether it is to begin a transaction itself where it needs one."""
    cdef bint has_begun
    cdef bint is_another
    """Whether the program is to be run anew, because its transaction sees another snapshot than its first statement."""
    cdef object first, seen
    """The statement that was executed without a transaction, and its answer."""

    def __init__(self, Player player, connection):
        cursor = connection.cursor()
        self.player, self.connection = player, connection
        self.run, self.fetch, self.fetch_many = cursor.execute, cursor.fetchall, cursor.fetchmany

    cdef begin(self, how):
        self.run(how)
        self.has_begun = True

    cdef play(self, program):
        if type(program) is AtOnce and not self.reads:  # a reading transaction may have to begin first
            done = self.rows_of((<AtOnce>program).step)
            if done is not None:
                return done
            program = (<AtOnce>program).begun()
        try:
            return self.answer_all(program)
        except:
            program.close()
            raise

    cdef answer_all(self, program):
        cdef object asked, rows = None, failure = None
        cdef bint has_ended = False
        while True:
            asked = next_asked(program, rows, failure, &has_ended)
            if has_ended:
                return asked
            failure = None
            try:
                if self.reads and not self.has_begun:
                    if self.first is None and Py_IS_TYPE(asked, self.player.alone):
                        rows = self.rows_of(asked)
                        self.first, self.seen = asked, rows
                        continue
                    self.begin(self.player.begin_read)
                    if self.first is not None and self.rows_of(self.first) != self.seen:
                        self.is_another = True
                        program.close()
                        return None
                rows = self.rows_of(asked)
            except Exception as error:
                failure = error

    cdef fetched(self):
        """The counterpart of the function in `threadmark.bounded_sqlite`."""
        cdef Py_ssize_t few = self.player.few, most = self.player.much, size = 0
        cdef list some = self.fetch_many(few)
        cdef list rows = list(some) if len(some) == few else some
        while len(some) == few:
            for row in some:
                for each in row:
                    if type(each) is bytes:
                        size += PyBytes_GET_SIZE(each)
                    elif type(each) is str:
                        size += PyUnicode_GET_LENGTH(each)
            if size > most:
                most = self.player.expect_plausible(self.connection, size)
            some = self.fetch_many(few)
            rows.extend(some)
        return rows

    cdef rows_of(self, asked):
        try:
            if Py_IS_TYPE(asked, self.player.query) or Py_IS_TYPE(asked, self.player.alone):
                self.run(asked[0], asked[1])
                return self.fetched()
            if Py_IS_TYPE(asked, self.player.direct):
                return asked[0](self.run, self.fetch, asked[1])
            return self.player.execute(self.connection, asked)
        except Exception as error:
            return self.player.again(self.connection, asked, error)
